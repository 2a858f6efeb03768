//! The way of a write: epochs before and after it, and its own answer kept where that is sound.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use callward_core::{
    CacheStatus, CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use crate::event::Happened;
use crate::fresh::{Executed, Gate, Lifetime};
use crate::key::Identity;
use crate::reason::RefusalReason;
use crate::scope::{Epochs, WriteGuard};
use crate::settling::{Ended, Settling};
use crate::shared::{Kept, Shared, note};
use crate::tools::Version;

pin_project! {
    /// A write on its way. Its scopes hear of it just before it is sent, not before: one that is
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
    #[inline]
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
                    this.write.end(Some(&result));
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

/// What a write is to its scopes.
#[derive(Debug)]
pub(crate) struct Write {
    shared: Arc<Shared>,
    version: Arc<Version>,
    /// Boxed, as most writes have none and all would carry its bytes.
    keep: Option<Box<Keep>>,
    record: Option<Arc<CallRecord>>,
    sent: Option<Sent>,
    /// The epoch of the principal when the write was sent; counts only if its answer is kept.
    principal_epoch: u64,
}

/// A write that was sent and has not ended.
#[derive(Debug)]
struct Sent {
    guard: WriteGuard,
    at: Instant,
    attempt_timeout: Duration,
    deadline: Option<Instant>,
}

/// How the answer of an idempotent write is kept.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) identity: Identity,
    pub(crate) ttl: Duration,
    pub(crate) gate: Gate,
    pub(crate) usual: Option<Duration>,
}

impl Write {
    #[inline]
    pub(crate) fn new(shared: Arc<Shared>, version: Arc<Version>, keep: Option<Box<Keep>>) -> Self {
        Self {
            shared,
            version,
            keep,
            record: None,
            sent: None,
            principal_epoch: 0,
        }
    }

    /// Tells the scopes that the write is about to be sent; returns the call to send.
    fn begin(&mut self, mut call: ToolCall) -> ToolCall {
        let (shared, footprint) = (&*self.shared, &self.version.footprint);
        let touched = footprint.touch(&shared.scopes, &call);
        let at = Instant::now();
        let guard = match &self.keep {
            None => WriteGuard::begin(touched, &shared.scopes),
            Some(keep) => {
                self.principal_epoch = shared.principals.epoch(keep.identity.principal);
                let watched = footprint.rewrite(&shared.scopes, &call);
                WriteGuard::begin_watching(touched, watched, shared.scopes.at(at))
            }
        };
        self.sent = Some(Sent {
            guard,
            at,
            attempt_timeout: call.plan().limits.attempt_timeout,
            deadline: call.deadline().map(Instant::from_std),
        });
        let record = &*self.version.record;
        record.counters.invalidations.add_one();
        shared.tell(record, || Happened::Invalidated);
        note(&call, CacheStatus::Invalidated);
        if let Some(told) = call.record() {
            told.set_cache_scope(|| footprint.writes());
        }
        if call.plan().is_retryable() {
            if call.record().is_none() {
                call = call.with_record(Arc::new(CallRecord::for_counting()));
            }
            self.record = call.record().cloned();
        }
        call
    }

    /// Tells the scopes how the write ended; keeps its answer if nothing else happened meanwhile.
    fn end(&mut self, result: Option<&Result<ToolOutput, ToolError>>) {
        let Some(sent) = self.sent.take() else {
            return;
        };
        let (began, now) = (sent.at, Instant::now());
        let took = now.saturating_duration_since(began);
        let settling = self.settling(&sent, result, now);
        let produced = sent.guard.end(settling, now);
        let Some(Ok(output)) = result else {
            return;
        };
        self.version.record.writes.observe(took);
        let Some(keep) = &self.keep else {
            return;
        };
        let (shared, record) = (&*self.shared, &*self.version.record);
        let lifetime = match shared.lifetime(output, keep.ttl, &keep.gate, &keep.identity) {
            // a write is not served beyond its time
            Ok(lifetime) => Lifetime {
                stale: Duration::ZERO,
                ..lifetime
            },
            Err(reason) => return shared.refuse(record, reason),
        };
        record.took(took);
        // its principal may have been purged meanwhile
        let key_of = |epochs: &Epochs| {
            let key = shared
                .keys
                .key(&keep.identity, self.principal_epoch, epochs);
            (shared.key(&keep.identity, epochs) == key).then_some(key)
        };
        if let Some(key) = produced.as_ref().and_then(key_of) {
            let executed = Executed {
                key,
                sent: began,
                output,
                verifies: false,
            };
            keep.gate.executed(shared, &self.version, &executed);
            let kept = Kept {
                lifetime,
                sent: began,
                took,
                usual: keep.usual,
            };
            shared.keep(key, record, output, kept);
        } else {
            shared.refuse(record, RefusalReason::Overtaken);
        }
    }

    /// Decides for how long what the write touched is unsettled.
    fn settling(
        &self,
        sent: &Sent,
        result: Option<&Result<ToolOutput, ToolError>>,
        now: Instant,
    ) -> Settling {
        let left = |deadline: Instant| deadline.saturating_duration_since(now);
        let is_repeated = |record: &Arc<CallRecord>| record.was_retried();
        let record = &self.version.record;
        let settling = Settling::of(&Ended {
            result,
            repeated: self.record.as_ref().is_some_and(is_repeated),
            p99: record.writes.p99(),
            ceiling: self.shared.config.settle,
            attempt_timeout: sent.attempt_timeout,
            to_deadline: sent.deadline.map(left).unwrap_or_default(),
        });
        if !settling.unsettled.is_zero() {
            let state = self.version.footprint.writes();
            let all = &self.shared.unsettled;
            all.note(state, record, result, now, settling.unsettled);
        }
        settling
    }
}

/// Dropped before its answer, it may still land.
impl Drop for Write {
    fn drop(&mut self) {
        self.end(None);
    }
}
