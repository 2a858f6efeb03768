//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ProgressSink, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use parking_lot::Mutex;
use tower_layer::Layer;
use tower_service::Service;

use super::permits::{Held, Permits};
use super::{ConcurrencyHandle, ConcurrencyLimitLayer};
use crate::permitted::Permitted;

/// Limits how many calls are in flight at a server; the others wait in a queue.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit<S> {
    inner: S,
    permits: Arc<Permits>,
}

impl<S> ConcurrencyLimit<S> {
    /// Returns a handle that reads the limit.
    #[must_use]
    pub fn handle(&self) -> ConcurrencyHandle {
        ConcurrencyHandle(self.permits.clone())
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Service = ConcurrencyLimit<S>;

    fn layer(&self, inner: S) -> ConcurrencyLimit<S> {
        let permits = Arc::new(Permits::new(self.clone()));
        ConcurrencyLimit { inner, permits }
    }
}

impl<S: ToolService> Service<ToolCall> for ConcurrencyLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future =
        Either<Permitted<S::Future, Held>, BoxFuture<'static, Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let place = match self.permits.try_acquire(call.tool().name()) {
            Ok(held) if call.client.is_none() => {
                return Either::Left(Permitted::new(self.inner.call(call), Some(held)));
            }
            place => place,
        };
        // the ready service goes with the call, and a clone stays
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let permits = self.permits.clone();
        Either::Right(Box::pin(async move {
            let held = match place {
                Ok(held) => held,
                Err(tool) => permits.acquire(&call, tool).await?,
            };
            if call.client.is_none() {
                let _held = held;
                return inner.call(call).await;
            }
            let place = Place::of(&call, held);
            let answer = inner.call(call.with_progress(place.clone())).await;
            place.leave();
            answer
        }))
    }
}

/// The place of a call whose client can be asked. The call leaves it once that happens: a person
/// must not keep other calls from the server.
struct Place {
    held: Mutex<Option<Held>>,
    /// The caller's sink.
    next: Option<Arc<dyn ProgressSink>>,
}

impl Place {
    fn of(call: &ToolCall, held: Held) -> Arc<Self> {
        Arc::new(Self {
            held: Mutex::new(Some(held)),
            next: call.progress().cloned(),
        })
    }

    fn leave(&self) {
        let left = self.held.lock().take();
        drop(left);
    }
}

impl ProgressSink for Place {
    fn report(&self, params: &[u8]) {
        if let Some(next) = &self.next {
            next.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        self.leave();
        if let Some(next) = &self.next {
            next.waits_for_person(waits);
        }
    }
}
