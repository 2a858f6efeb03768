//! The fields of an attempt's span, at its start and at its end.

use std::fmt;
use std::time::Duration;

use callward_core::{Delivery, RouteDecision, ServerId, ToolCall};
use tracing::Span;
use tracing::field::Empty;

use crate::error_type::Ending;
use crate::{context, names, status};

/// Makes the span of an attempt. If it is disabled, none of its fields is computed.
pub(super) fn begin(call: &ToolCall) -> Span {
    let span = tracing::info_span!(
        target: names::TARGET,
        names::ATTEMPT_SPAN,
        { names::SERVER } = Empty,
        { names::ROUTE_STRATEGY } = Empty,
        { names::ROUTE_RULE } = Empty,
        { names::ROUTE_REASON } = Empty,
        { names::ROUTE_CANDIDATES } = Empty,
        { names::ROUTE_ALTERNATES } = Empty,
        { names::STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::OTEL_STATUS } = Empty,
        { names::DELIVERY } = Empty,
        { names::DURATION_MS } = Empty,
        { names::OTEL_NAME } = Empty,
        { names::METHOD } = Empty,
        { names::REQUEST_ID } = Empty,
        { names::PROTOCOL_VERSION } = Empty,
        { names::SESSION_ID } = Empty,
        { names::TRANSPORT } = Empty,
        { names::PROTOCOL } = Empty,
        { names::PROTOCOL_HTTP_VERSION } = Empty,
        { names::SERVER_ADDRESS } = Empty,
        { names::SERVER_PORT } = Empty,
        { names::OTEL_KIND } = names::KIND_INTERNAL,
        { names::OPERATION } = names::OPERATION_EXECUTE_TOOL,
        { names::TOOL } = call.tool().name().as_str(),
        { names::ATTEMPT_NUMBER } = call.attempt().number,
    );
    if !span.is_disabled() {
        context::continue_alone(&span, call);
    }
    span
}

/// The outcome of an attempt.
pub(super) struct End<'a> {
    pub(super) server: Option<&'a ServerId>,
    /// How the router decided; the last decision, if the attempt moved from server to server.
    pub(super) route: Option<&'a RouteDecision>,
    pub(super) ending: Ending<'a>,
    pub(super) delivery: Delivery,
    pub(super) took: Duration,
}

/// Writes the outcome of an attempt.
pub(super) fn end(span: &Span, end: &End<'_>) {
    let (route, status) = (end.route, status::of_request(end.ending));
    let alternates = route.map(|route| &route.alternates);
    let alternates = alternates.filter(|alternates| !alternates.is_empty());
    tracing::record_all!(
        span,
        { names::SERVER } = end.server.map(|server| server.as_str()),
        { names::ROUTE_STRATEGY } = route.map(|route| route.strategy),
        { names::ROUTE_RULE } = route.map(|route| display(&route.rule)),
        { names::ROUTE_REASON } = route.map(|route| route.reason),
        { names::ROUTE_CANDIDATES } = route.map(|route| display(List(&route.candidates))),
        { names::ROUTE_ALTERNATES } = alternates.map(|alternates| display(List(alternates))),
        { names::STATUS_CODE } = status.code,
        { names::ERROR_TYPE } = status.error_type,
        { names::OTEL_STATUS } = status.status,
        { names::DELIVERY } = end.delivery.as_str(),
        { names::DURATION_MS } = end.took.as_secs_f64() * 1e3,
    );
}

/// Items separated by commas.
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
