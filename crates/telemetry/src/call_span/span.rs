//! The span of a call: what is known when it begins, and what at its end.

use std::time::Duration;

use tollgate_core::{CallRecord, ConfirmRule, HedgeStatus, Inbound, ToolCall};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::contents::Contents;
use crate::error_type::Ending;
use crate::{context, names, status};

/// Makes the span of a call, with all that is known before it runs. If the span is disabled,
/// nothing here is computed.
pub(super) fn begin(call: &ToolCall, contents: &Contents) -> Span {
    let tool = call.tool();
    let span = tracing::info_span!(
        target: names::TARGET,
        names::CALL_SPAN,
        { names::OTEL_NAME } = %format_args!("{} {}", verb(call), tool.name()),
        { names::OTEL_KIND } = kind(call),
        { names::OTEL_STATUS } = Empty,
        { names::METHOD } = Empty,
        { names::OPERATION } = names::OPERATION_EXECUTE_TOOL,
        { names::TOOL } = tool.name().as_str(),
        { names::TOOL_TYPE } = Empty,
        { names::TOOL_DESCRIPTION } = Empty,
        { names::CALL_ID } = call.id(),
        { names::ARGUMENTS } = Empty,
        { names::RESULT } = Empty,
        { names::REQUEST_ID } = Empty,
        { names::PROTOCOL_VERSION } = Empty,
        { names::SESSION_ID } = Empty,
        { names::TRANSPORT } = Empty,
        { names::PROTOCOL } = Empty,
        { names::PROTOCOL_HTTP_VERSION } = Empty,
        { names::CLIENT_ADDRESS } = Empty,
        { names::CLIENT_PORT } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::STATUS_CODE } = Empty,
        { names::SERVER_SET } = tool.set().as_str(),
        { names::ANNOTATIONS } = %call.annotations_shown(),
        { names::EFFECT } = call.plan().effect.as_str(),
        { names::PLAN } = %call.plan().in_line(),
        { names::PLAN_REASON } = &*call.plan().reason,
        { names::CONFIRM } = confirm_word(call.plan().confirm),
        { names::CACHE } = Empty,
        { names::CACHE_BYPASS_REASON } = Empty,
        { names::ATTEMPTS } = Empty,
        { names::HEDGE } = Empty,
        { names::GUARDED } = Empty,
        { names::SERVER } = Empty,
        { names::ROUTE_REASON } = Empty,
        { names::DURATION_MS } = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    context::continue_call(&span, call);
    match call.inbound() {
        Some(inbound) => write_inbound(&span, inbound),
        None => write_tool(&span, call),
    }
    if let Some(arguments) = contents.arguments(call) {
        span.record(names::ARGUMENTS, arguments);
    }
    span
}

/// Says of which kind the span of a call is: it is an MCP server's if the call came as an MCP request.
fn kind(call: &ToolCall) -> &'static str {
    match call.inbound() {
        Some(_) => names::KIND_SERVER,
        None => names::KIND_INTERNAL,
    }
}

fn verb(call: &ToolCall) -> &'static str {
    match call.inbound() {
        Some(_) => names::METHOD_TOOLS_CALL,
        None => names::OPERATION_EXECUTE_TOOL,
    }
}

fn write_inbound(span: &Span, inbound: &Inbound) {
    span.record(names::METHOD, names::METHOD_TOOLS_CALL);
    span.record(names::TRANSPORT, inbound.transport.as_str());
    if let Some(request) = &inbound.request {
        span.record(names::REQUEST_ID, display(request));
    }
    if let Some(version) = inbound.protocol_version {
        span.record(names::PROTOCOL_VERSION, version);
    }
    if let Some(session) = &inbound.session {
        span.record(names::SESSION_ID, session.as_str());
    }
    if let Some(version) = inbound.http_version {
        span.record(names::PROTOCOL, "http");
        span.record(names::PROTOCOL_HTTP_VERSION, version);
    }
    if let Some(client) = inbound.client {
        span.record(names::CLIENT_ADDRESS, display(client.ip()));
        span.record(names::CLIENT_PORT, client.port());
    }
}

fn write_tool(span: &Span, call: &ToolCall) {
    span.record(names::TOOL_TYPE, names::TOOL_TYPE_FUNCTION);
    if let Some(text) = call.tool().definition().description() {
        let end = text.floor_char_boundary(MAX_DESCRIPTION);
        span.record(names::TOOL_DESCRIPTION, &text[..end]);
    }
}

/// How much of a tool's description is shown, in bytes.
const MAX_DESCRIPTION: usize = 1024;

fn confirm_word(rule: ConfirmRule) -> &'static str {
    match rule {
        ConfirmRule::Skip => "skip",
        // a rule this crate does not know yet is shown as the stricter one
        _ => "ask",
    }
}

/// Writes what became of the call.
pub(super) fn end(
    span: &Span,
    is_server: bool,
    record: &CallRecord,
    ending: Ending<'_>,
    took: Duration,
) {
    span.record(names::CACHE, record.cache().as_str());
    if let Some(reason) = record.cache_bypass() {
        span.record(names::CACHE_BYPASS_REASON, reason);
    }
    span.record(names::ATTEMPTS, record.started_attempts());
    let hedge = record.hedge();
    if hedge != HedgeStatus::None {
        span.record(names::HEDGE, hedge.as_str());
    }
    if record.was_guarded() {
        span.record(names::GUARDED, true);
    }
    let (server, reason) = record.server().unzip();
    if let Some(server) = server
        .as_ref()
        .or_else(|| ending.error().and_then(|error| error.server()))
    {
        span.record(names::SERVER, display(server));
    }
    if let Some(reason) = reason {
        span.record(names::ROUTE_REASON, reason);
    }
    if is_server {
        status::of_server(span, ending);
    } else {
        status::of_client(span, ending);
    }
    span.record(names::DURATION_MS, took.as_secs_f64() * 1e3);
}
