//! An observed attempt, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Attempt, AttemptRecord, CallRecord, Delivery, ErrorKind, ServerId, ToolCall};
use tokio::time::Instant;
use tracing::Span;

use crate::client_request::ClientRequestInfo;
use crate::error_type::{Ending, Status, error};
use crate::names;
use crate::span_future::Observed;

/// An attempt whose end is written into its span and record.
#[derive(Debug)]
pub(super) struct ObservedAttempt {
    span: Span,
    /// Writes the request into the span, if the span is enabled.
    request: Option<Arc<ClientRequestInfo>>,
    record: Arc<CallRecord>,
    /// Identifies the attempt in the router's decisions.
    attempt: Attempt,
    started: Instant,
}

impl ObservedAttempt {
    /// Begins to observe an attempt, and gives its call a record if it has none.
    pub(super) fn begin(mut call: ToolCall, span: Span) -> (ToolCall, Self) {
        let record = call.ensure_record(CallRecord::new);
        let attempt = call.attempt().clone();
        let mut request = None;
        record.with(|facts| facts.started_attempts += 1);
        if !span.is_disabled() {
            record.ask_for_decisions();
            let tool = call.tool().name().as_str();
            let method = call.tool().definition.method.as_str();
            let info = ClientRequestInfo::new(&span, method, Some(tool));
            call.attempt_mut().watch = Some(info.watch());
            request = Some(info);
        }
        let observed = Self {
            span,
            request,
            record,
            attempt,
            started: Instant::now(),
        };
        (call, observed)
    }

    fn server(&self, ending: Ending<'_>) -> Option<ServerId> {
        match error(ending) {
            Some(error) if error.server.is_some() => error.server.clone(),
            // the record still has the server of the previous attempt
            Some(error) if error.kind == ErrorKind::NoEligibleServer => None,
            // of two concurrent attempts, each has its own
            _ => match &self.attempt.chosen {
                Some(chosen) => chosen.get(),
                None => self
                    .record
                    .with(|facts| Some(facts.server.as_ref()?.0.clone())),
            },
        }
    }

    /// Writes the outcome into the span.
    fn write_span(&self, ending: Ending<'_>, server: Option<&ServerId>, took: Duration) {
        let status = Status::of_request(ending);
        let delivery = match ending {
            None => Delivery::Unknown,
            Some(Ok(_)) => Delivery::Answered,
            Some(Err(error)) => error.delivery,
        };
        // the last decision, if the attempt moved from server to server
        let route = self.record.route_of(&self.attempt);
        let route = route.as_deref();
        let alternates = route.map(|route| &route.alternates);
        let alternates = alternates.filter(|alternates| !alternates.is_empty());
        tracing::record_all!(
            self.span,
            { names::SERVER } = server.map(|server| server.as_str()),
            { names::ROUTE_STRATEGY } = route.map(|route| route.strategy),
            { names::ROUTE_RULE } = route.map(|route| display(&route.rule)),
            { names::ROUTE_REASON } = route.map(|route| route.reason),
            { names::ROUTE_CANDIDATES } = route.map(|route| joined(&route.candidates)),
            { names::ROUTE_ALTERNATES } = alternates.map(|alternates| joined(alternates)),
            { names::STATUS_CODE } = status.code,
            { names::ERROR_TYPE } = status.error_type,
            { names::OTEL_STATUS } = status.status,
            { names::DELIVERY } = delivery.as_str(),
            { names::DURATION_MS } = took.as_secs_f64() * 1e3,
        );
    }
}

impl Observed for ObservedAttempt {
    fn span(&self) -> &Span {
        &self.span
    }

    fn ended(&self, ending: Ending<'_>) {
        let took = self.started.elapsed();
        let server = self.server(ending);
        let kind = match ending {
            None => Some(ErrorKind::Cancelled),
            Some(result) => result.as_ref().err().map(|error| error.kind),
        };
        if let Some(request) = &self.request {
            self.write_span(ending, server.as_ref(), took);
            request.close();
        }
        let ended = AttemptRecord {
            server,
            error: kind,
            took,
        };
        self.record.end_attempt(&self.attempt, ended);
    }
}

/// Joins items with commas.
fn joined(items: &[impl ToString]) -> String {
    let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
