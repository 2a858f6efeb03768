//! An attempt that somebody observes, from its start to its end.

use std::sync::Arc;

use callward_core::{Attempt, AttemptRecord, CallRecord, Delivery, ErrorKind, ServerId, ToolCall};
use tokio::time::Instant;
use tracing::Span;

use super::span;
use crate::error_type::Ending;
use crate::names;
use crate::outward::Outward;

/// An attempt under observation. Dropped before its end, it was cancelled.
#[derive(Debug)]
pub(super) struct Observed {
    span: Span,
    /// Who is told of the request, if there is a span to write it into.
    outward: Option<Arc<Outward>>,
    record: Arc<CallRecord>,
    /// Which one, to find what the router decided about it.
    attempt: Attempt,
    started: Instant,
    ended: bool,
}

impl Observed {
    /// Begins to observe an attempt, and gives its call a record if it has none.
    pub(super) fn begin(call: ToolCall, span: Span) -> (ToolCall, Self) {
        let (mut call, record) = match call.record().cloned() {
            Some(record) => (call, record),
            None => {
                let record = Arc::new(CallRecord::new());
                (call.with_record(record.clone()), record)
            }
        };
        let attempt = call.attempt().clone();
        let mut outward = None;
        record.start_attempt();
        if !span.is_disabled() {
            record.ask_for_decisions();
            let tool = call.tool().name().as_str();
            let told = Outward::new(&span, names::METHOD_TOOLS_CALL, Some(tool));
            call.attempt_mut().watch = Some(told.watch());
            outward = Some(told);
        }
        let observed = Self {
            span,
            outward,
            record,
            attempt,
            started: Instant::now(),
            ended: false,
        };
        (call, observed)
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn end(mut self, ending: Ending<'_>) {
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
            let route = self.record.route_of(&self.attempt);
            let end = span::End {
                server: server.as_ref(),
                route: route.as_deref(),
                ending,
                delivery,
                took,
            };
            span::end(&self.span, &end);
        }
        if let Some(outward) = &self.outward {
            outward.close();
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

impl Drop for Observed {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Ending::Cancelled);
        }
    }
}
