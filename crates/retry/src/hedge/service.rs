//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tokio::time::Instant;
use tower_service::Service;

use super::HedgeFuture;
use super::future::Observation;
use super::second::Second;
use super::shared::Shared;

/// Sends a slow read a second time, to another server, and takes the answer that comes first.
#[derive(Debug, Clone)]
pub struct Hedge<S> {
    inner: S,
    shared: Option<Arc<Shared>>,
}

impl<S> Hedge<S> {
    pub(crate) const fn new(inner: S, shared: Option<Arc<Shared>>) -> Self {
        Self { inner, shared }
    }
}

impl<S: ToolService> Service<ToolCall> for Hedge<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = HedgeFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> HedgeFuture<S> {
        let Some(shared) = &self.shared else {
            return HedgeFuture::passing(self.inner.call(call));
        };
        shared.deposit(&call);
        let Some(measure) = shared.measure(&call) else {
            return HedgeFuture::passing(self.inner.call(call));
        };
        let started = Instant::now();
        let second = shared.delay(&measure).map(|delay| {
            let due = started + delay;
            // the clone gets readied on its own when it is needed
            Box::pin(Second::new(
                shared.clone(),
                self.inner.clone(),
                &mut call,
                due,
            ))
        });
        let observation = Observation {
            shared: shared.clone(),
            measure,
            started,
        };
        HedgeFuture::observed(self.inner.call(call), observation, second)
    }
}
