//! The way of a write: epochs before and after it, and its own answer kept where that is sound.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Instant;
use tollgate_core::{
    CacheStatus, CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use tower_service::Service;

use crate::key::Identity;
use crate::scope::{Outcome, Scope, WriteGuard};
use crate::shared::{Shared, is_shareable, note};

pin_project! {
    /// A write on its way. Its scope hears of it just before it is sent, not before: one that is
    /// dropped while the inner service is not ready has changed nothing.
    pub(crate) struct WriteFuture<S>
    where
        S: Service<ToolCall>,
    {
        #[pin]
        stage: Stage<S>,
        write: Write,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S>
    where
        S: Service<ToolCall>,
    {
        // not sent: the inner service is not ready yet
        Waiting { inner: S, call: Option<ToolCall> },
        // sent
        Sent { #[pin] answer: S::Future },
    }
}

impl<S: Service<ToolCall>> WriteFuture<S> {
    pub(crate) fn new(inner: S, call: ToolCall, write: Write) -> Self {
        let call = Some(call);
        Self {
            stage: Stage::Waiting { inner, call },
            write,
        }
    }
}

impl<S: ToolService> Future for WriteFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.stage.as_mut().project() {
                StageProj::Waiting { inner, call } => {
                    ready!(inner.poll_ready(cx))?;
                    let Some(call) = call.take() else {
                        return Poll::Ready(Err(gone()));
                    };
                    let call = this.write.begin(call);
                    let answer = inner.call(call);
                    this.stage.set(Stage::Sent { answer });
                }
                StageProj::Sent { answer } => {
                    let result = ready!(answer.poll(cx));
                    this.write.end(&result);
                    return Poll::Ready(result);
                }
            }
        }
    }
}

/// Only a future whose inner service panicked while it was called, and that is polled again all the
/// same, gets here.
fn gone() -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        Delivery::Unknown,
        "the call was lost when the service inside panicked",
    )
}

/// What a write is to its scope.
#[derive(Debug)]
pub(crate) struct Write {
    shared: Arc<Shared>,
    scope: Arc<Scope>,
    keep: Option<Keep>,
    record: Option<Arc<CallRecord>>,
    guard: Option<WriteGuard>,
}

/// How the answer of an idempotent write is kept.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) identity: Identity,
    pub(crate) ttl: Duration,
}

impl Write {
    pub(crate) fn new(shared: Arc<Shared>, scope: Arc<Scope>, keep: Option<Keep>) -> Self {
        Self {
            shared,
            scope,
            keep,
            record: None,
            guard: None,
        }
    }

    /// Tells the scope that the write is about to be sent; returns the call to send.
    fn begin(&mut self, mut call: ToolCall) -> ToolCall {
        let limits = &call.plan().limits;
        let guard = self
            .scope
            .begin_write(limits.attempt_timeout, Instant::now());
        self.guard = Some(guard);
        self.shared.counters.invalidations.add_one();
        note(&call, CacheStatus::Invalidated);
        if call.plan().is_repeatable() {
            if call.record().is_none() {
                call = call.with_record(Arc::default());
            }
            self.record = call.record().cloned();
        }
        call
    }

    /// Tells the scope how the write ended; keeps its answer if nothing else happened meanwhile.
    fn end(&mut self, result: &Result<ToolOutput, ToolError>) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        let now = Instant::now();
        let produced = guard.end(self.outcome(result), now);
        if let (Some(epoch), Some(keep), Ok(output)) = (produced, &self.keep, result)
            && is_shareable(output)
        {
            let key = self.shared.keys.key(&keep.identity, epoch);
            self.shared.keep(key, output, keep.ttl, now);
        }
    }

    fn outcome(&self, result: &Result<ToolOutput, ToolError>) -> Outcome {
        // An attempt that was given up on may land after the one that was answered.
        let repeated = self
            .record
            .as_ref()
            .is_some_and(|record| record.was_repeated());
        let unknown = matches!(result, Err(error) if error.delivery() == Delivery::Unknown);
        if repeated || unknown {
            Outcome::MayLand
        } else {
            Outcome::Known
        }
    }
}
