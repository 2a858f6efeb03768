//! The span of a call, with the fields that are known at its start.

use callward_core::{ConfirmRule, Method, Tool, ToolCall};
use tracing::Span;
use tracing::field::Empty;

use crate::contents::Contents;
use crate::{context, names};

/// Makes the span of a call, with everything that is known before it runs. If the span is disabled,
/// none of its fields is computed.
pub(super) fn begin(call: &ToolCall, contents: &Contents) -> Span {
    let (tool, plan) = (call.tool(), call.plan());
    let inbound = call.inbound.as_deref();
    let client = inbound.and_then(|inbound| inbound.client);
    let http_version = inbound.and_then(|inbound| inbound.http_version);
    // a call that came as an MCP request is a server's; only others describe the tool
    let method = tool.definition.method;
    let (verb, kind) = match inbound {
        Some(_) => (method.as_str(), names::KIND_SERVER),
        None => (names::OPERATION_EXECUTE_TOOL, names::KIND_INTERNAL),
    };
    let is_tool = method == Method::CallTool;
    let name = match is_tool {
        true => format!("{verb} {}", tool.name()),
        false => method.to_string(),
    };
    let is_local = inbound.is_none();
    let span = tracing::info_span!(
        target: names::TARGET,
        names::CALL_SPAN,
        { names::CACHE } = Empty,
        { names::CACHE_BYPASS_REASON } = Empty,
        { names::ATTEMPTS } = Empty,
        { names::HEDGE } = Empty,
        { names::GUARDED } = Empty,
        { names::SERVER } = Empty,
        { names::ROUTE_REASON } = Empty,
        { names::STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::OTEL_STATUS } = Empty,
        { names::DECISIONS } = Empty,
        { names::RESULT } = Empty,
        { names::DURATION_MS } = Empty,
        { names::OTEL_NAME } = name,
        { names::OTEL_KIND } = kind,
        { names::METHOD } = inbound.map(|_| method.as_str()),
        { names::OPERATION } = is_tool.then_some(names::OPERATION_EXECUTE_TOOL),
        { names::TOOL } = tool.name().as_str(),
        { names::TOOL_TYPE } = is_local.then_some(names::TOOL_TYPE_FUNCTION),
        { names::TOOL_DESCRIPTION } = description(tool).filter(|_| is_local),
        { names::CALL_ID } = call.id.as_deref(),
        { names::ARGUMENTS } = contents.arguments(call),
        { names::REQUEST_ID } = inbound.and_then(|from| from.request.as_ref()).map(display),
        { names::PROTOCOL_VERSION } = inbound.and_then(|from| from.protocol_version),
        { names::SESSION_ID } = inbound.and_then(|from| from.session.as_ref()).map(|id| id.as_str()),
        { names::TRANSPORT } = inbound.map(|from| from.transport.as_str()),
        { names::PROTOCOL } = http_version.map(|_| "http"),
        { names::PROTOCOL_HTTP_VERSION } = http_version,
        { names::CLIENT_ADDRESS } = client.map(|client| display(client.ip())),
        { names::CLIENT_PORT } = client.map(|client| client.port()),
        { names::SERVER_SET } = tool.set().as_str(),
        { names::ANNOTATIONS } = tool.resolved_applied(call.applied()).annotations.to_string(),
        { names::EFFECT } = plan.effect.as_str(),
        { names::PLAN } = plan.in_line().to_string(),
        { names::PLAN_REASON } = &*plan.reason,
        { names::CONFIRM } = if plan.confirm == ConfirmRule::Skip { "skip" } else { "ask" },
    );
    if !span.is_disabled() {
        context::continue_call(&span, call);
    }
    span
}

fn description(tool: &Tool) -> Option<&str> {
    let text = tool.definition.description.as_deref()?;
    Some(&text[..text.floor_char_boundary(MAX_DESCRIPTION)])
}

/// How many bytes of a tool's description are shown.
const MAX_DESCRIPTION: usize = 1024;
