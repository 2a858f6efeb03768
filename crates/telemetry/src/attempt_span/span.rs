//! The span of an attempt: what is known when it begins, and what at its end.

use std::fmt;
use std::time::Duration;

use tollgate_core::{RouteDecision, ServerId, ToolCall};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::error_type::Ending;
use crate::{context, names, status};

/// Makes the span of an attempt. If it is disabled, nothing here is computed.
pub(super) fn begin(call: &ToolCall) -> Span {
    let span = tracing::info_span!(
        target: names::TARGET,
        names::ATTEMPT_SPAN,
        { names::OTEL_NAME } = Empty,
        { names::OTEL_KIND } = names::KIND_INTERNAL,
        { names::OTEL_STATUS } = Empty,
        { names::METHOD } = Empty,
        { names::OPERATION } = names::OPERATION_EXECUTE_TOOL,
        { names::TOOL } = call.tool().name().as_str(),
        { names::REQUEST_ID } = Empty,
        { names::PROTOCOL_VERSION } = Empty,
        { names::SESSION_ID } = Empty,
        { names::TRANSPORT } = Empty,
        { names::PROTOCOL } = Empty,
        { names::PROTOCOL_HTTP_VERSION } = Empty,
        { names::SERVER_ADDRESS } = Empty,
        { names::SERVER_PORT } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::STATUS_CODE } = Empty,
        { names::ATTEMPT_NUMBER } = call.attempt().number,
        { names::SERVER } = Empty,
        { names::ROUTE_STRATEGY } = Empty,
        { names::ROUTE_RULE } = Empty,
        { names::ROUTE_REASON } = Empty,
        { names::ROUTE_CANDIDATES } = Empty,
        { names::ROUTE_ALTERNATES } = Empty,
        { names::DELIVERY } = Empty,
        { names::DURATION_MS } = Empty,
    );
    if !span.is_disabled() {
        context::continue_alone(&span, call);
    }
    span
}

/// Writes what became of the attempt.
pub(super) fn end(
    span: &Span,
    server: Option<&ServerId>,
    route: Option<&RouteDecision>,
    ending: Ending<'_>,
    took: Duration,
) {
    if let Some(server) = server {
        span.record(names::SERVER, display(server));
    }
    if let Some(decision) = route {
        write_route(span, decision);
    }
    status::answered_with(span, ending);
    status::of_client(span, ending);
    span.record(names::DURATION_MS, took.as_secs_f64() * 1e3);
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
