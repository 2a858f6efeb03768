//! One span per attempt, directly around the router.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::Instant;
use tollgate_core::{
    Attempt, AttemptRecord, CallRecord, Delivery, ErrorKind, RouteDecision, ServerId, ToolCall,
    ToolError, ToolOutput, ToolService,
};
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;
use tracing::field::{Empty, display};

use crate::error_type::Ending;
use crate::names;

/// Puts an [`AttemptSpan`] around a service.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct AttemptSpanLayer;

impl AttemptSpanLayer {
    /// Has nothing to set.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for AttemptSpanLayer {
    type Service = AttemptSpan<S>;

    fn layer(&self, inner: S) -> AttemptSpan<S> {
        AttemptSpan { inner }
    }
}

/// Makes one span per attempt, and writes each attempt into the call's record if it has one.
///
/// The server comes from the error if it names one, and else from where the router wrote it: the
/// attempt's own place ([`ChosenServer`](tollgate_core::ChosenServer)) if it has one, or the record.
/// How the router decided comes from the record; an attempt with a span gets one if its call has none.
/// An attempt that is dropped is recorded as `cancelled`, delivery unknown.
#[derive(Debug, Clone)]
pub struct AttemptSpan<S> {
    inner: S,
}

impl<S: ToolService> Service<ToolCall> for AttemptSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AttemptSpanFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let span = tracing::info_span!(
            target: names::TARGET,
            names::ATTEMPT_SPAN,
            { names::ATTEMPT_NUMBER } = call.attempt().number,
            { names::SERVER } = Empty,
            { names::ROUTE_STRATEGY } = Empty,
            { names::ROUTE_RULE } = Empty,
            { names::ROUTE_REASON } = Empty,
            { names::ROUTE_CANDIDATES } = Empty,
            { names::ROUTE_ALTERNATES } = Empty,
            { names::ERROR_TYPE } = Empty,
            { names::DELIVERY } = Empty,
            { names::DURATION_MS } = Empty,
        );
        if span.is_disabled() && call.record().is_none() {
            return AttemptSpanFuture {
                answer: self.inner.call(call),
                observed: None,
            };
        }
        let (call, observed) = Observed::begin(call, span);
        AttemptSpanFuture {
            answer: observed.span.in_scope(|| self.inner.call(call)),
            observed: Some(observed),
        }
    }
}

/// An attempt under observation. Dropped before its end, it was cancelled.
#[derive(Debug)]
struct Observed {
    span: Span,
    record: Arc<CallRecord>,
    /// Which one, to find what the router decided about it.
    attempt: Attempt,
    started: Instant,
    ended: bool,
}

impl Observed {
    /// Begins to observe an attempt, and gives its call a record if it has none.
    fn begin(call: ToolCall, span: Span) -> (ToolCall, Self) {
        let (call, record) = match call.record().cloned() {
            Some(record) => (call, record),
            None => {
                let record = Arc::new(CallRecord::new());
                (call.with_record(record.clone()), record)
            }
        };
        record.start_attempt();
        if !span.is_disabled() {
            record.ask_for_decisions();
        }
        let observed = Self {
            span,
            record,
            attempt: call.attempt().clone(),
            started: Instant::now(),
            ended: false,
        };
        (call, observed)
    }

    fn end(mut self, ending: Ending<'_>) {
        self.write(ending);
    }

    fn write(&mut self, ending: Ending<'_>) {
        self.ended = true;
        let took = self.started.elapsed();
        let server = self.server(ending);
        let (kind, delivery) = match ending {
            Ending::Cancelled => (Some(ErrorKind::Cancelled), Delivery::Unknown),
            Ending::Done(Ok(_)) => (None, Delivery::Answered),
            Ending::Done(Err(error)) => (Some(error.kind()), error.delivery()),
        };
        if !self.span.is_disabled() {
            let span = &self.span;
            if let Some(server) = &server {
                span.record(names::SERVER, display(server));
            }
            if let Some(decision) = self.record.route_of(&self.attempt) {
                write_route(span, &decision);
            }
            if let Some(error_type) = ending.error_type() {
                span.record(names::ERROR_TYPE, &*error_type);
            }
            span.record(names::DELIVERY, delivery.as_str());
            span.record(names::DURATION_MS, took.as_secs_f64() * 1e3);
        }
        let ended = AttemptRecord::new(server, kind, took);
        self.record.end_attempt(&self.attempt, ended);
    }

    fn server(&self, ending: Ending<'_>) -> Option<ServerId> {
        match ending.error() {
            Some(error) if error.server().is_some() => error.server().cloned(),
            // the record still holds the server of the attempt before
            Some(error) if error.kind() == ErrorKind::NoEligibleServer => None,
            // where two attempts run beside each other, each is told apart
            _ => match &self.attempt.chosen {
                Some(chosen) => chosen.get(),
                None => Some(self.record.server()?.0),
            },
        }
    }
}

/// Writes how the router decided; of an attempt that went from one server to the next, the last time.
fn write_route(span: &Span, decision: &RouteDecision) {
    span.record(names::ROUTE_STRATEGY, decision.strategy);
    span.record(names::ROUTE_RULE, display(&decision.rule));
    span.record(names::ROUTE_REASON, decision.reason);
    span.record(names::ROUTE_CANDIDATES, display(List(&decision.candidates)));
    if !decision.alternates.is_empty() {
        span.record(names::ROUTE_ALTERNATES, display(List(&decision.alternates)));
    }
}

/// Things with a comma between each two.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, item) in self.0.iter().enumerate() {
            let before = if place == 0 { "" } else { ", " };
            write!(f, "{before}{item}")?;
        }
        Ok(())
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Ending::Cancelled);
        }
    }
}

pin_project! {
    /// The answer of an [`AttemptSpan`].
    pub struct AttemptSpanFuture<F> {
        // dropped first, so that the attempt ends after what is inside of it
        #[pin]
        answer: F,
        observed: Option<Observed>,
    }
}

impl<F> Future for AttemptSpanFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(observed) = this.observed else {
            return this.answer.poll(cx);
        };
        let result = ready!(observed.span.in_scope(|| this.answer.poll(cx)));
        if let Some(observed) = this.observed.take() {
            observed.end(Ending::Done(&result));
        }
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for AttemptSpanFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptSpanFuture")
            .field("is_observed", &self.observed.is_some())
            .finish_non_exhaustive()
    }
}
