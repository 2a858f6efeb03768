//! The span of an attempt, with the fields that are known at its start.

use callward_core::ToolCall;
use tracing::Span;
use tracing::field::Empty;

use crate::{context, names};

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
