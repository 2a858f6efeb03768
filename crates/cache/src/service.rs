//! The service: decides how a call goes.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, Method, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_service::Service;

use crate::key::EntryKind;
use crate::open_tasks;
use crate::read::Read;
use crate::route::{Lookup, Route};
use crate::shared::{Look, Shared};
use crate::tools::Version;
use crate::write::Write;

/// Answers calls from the cache where their plan allows it, and forwards the rest.
#[derive(Debug, Clone)]
pub struct Cache<S> {
    /// Shared, so that a clone for a hit copies no layer.
    inner: Arc<S>,
    shared: Arc<Shared>,
}

impl<S> Cache<S> {
    pub(crate) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self {
            inner: Arc::new(inner),
            shared,
        }
    }
}

impl<S: ToolService> Cache<S> {
    fn look(&self, version: &Version, lookup: &Lookup, call: &ToolCall) -> Look {
        let (shared, now) = (&self.shared, Instant::now());
        match lookup.key(shared, version, call, now) {
            Ok(key) => shared.look(key, &lookup.gate, &version.record, call, now),
            Err(_) => Look::Nothing,
        }
    }
}

type Answer = Result<ToolOutput, ToolError>;

/// The future of a [`Cache`]: a hit is ready at once, everything else is boxed.
pub type CacheFuture = Either<Ready<Answer>, BoxFuture<'static, Answer>>;

fn hit(output: ToolOutput) -> CacheFuture {
    Either::Left(ready(Ok(output)))
}

impl<S: ToolService> Service<ToolCall> for Cache<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = CacheFuture;

    /// Always ready: a hit does not need the inner service.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> CacheFuture {
        let shared = &self.shared;
        let inner = || S::clone(&self.inner);
        if call.tool().definition.method == Method::GetTask {
            return Either::Right(Box::pin(open_tasks::watch(shared.clone(), inner(), call)));
        }
        let version = shared.tools.version(call.tool(), shared);
        let keep = match Route::of(shared, &version, &call) {
            Route::Bypass(reason) => {
                version.record.bypass(&call, reason);
                let sent = inner();
                return Either::Right(Box::pin(async move {
                    let reads = !call.plan().is_write();
                    let running = version.record.observer.begin(call.tool(), reads);
                    let result = sent.oneshot(call).await;
                    drop(running);
                    result
                }));
            }
            Route::Write => None,
            Route::LookUp(lookup) => {
                let look = self.look(&version, &lookup, &call);
                if let Look::Hit(entry) = look {
                    return hit(entry.output.clone());
                }
                if lookup.kind == EntryKind::Read {
                    let read = Read {
                        shared: shared.clone(),
                        version,
                        lookup,
                        verifies: matches!(look, Look::Verify),
                    };
                    if let Look::Ended(entry) = look
                        && let Some(output) = read.while_revalidating(&entry, &*self.inner, &call)
                    {
                        return hit(output);
                    }
                    return Either::Right(Box::pin(read.run(inner(), call)));
                }
                Some(lookup)
            }
        };
        let write = Write::new(shared.clone(), version, keep);
        Either::Right(Box::pin(write.run(inner(), call)))
    }
}
