//! Every name of a span, a field or a metric.
//!
//! Names that start with `gen_ai.`, `mcp.`, `jsonrpc.`, `rpc.`, `network.`, `server.` or `client.`,
//! and `error.type`, are those of the OpenTelemetry semantic conventions for generative AI, MCP and
//! networks. The first two have status *Development*: they may still change, and this file is the
//! one place to follow them. There are no conventional names for cache, retry, routing and
//! confirmation; ours start with `callward.`. Names that start with `otel.` are not attributes:
//! `tracing-opentelemetry` takes the name, kind and status of a span from them.

pub mod metric;

/// The target of all spans, for filters such as `callward=info`.
pub const TARGET: &str = "callward";

/// The span of a call. Its display name, with the tool in it, is in [`OTEL_NAME`].
pub const CALL_SPAN: &str = "execute_tool";
/// The span of one attempt.
pub const ATTEMPT_SPAN: &str = "attempt";
/// The span of one listing of a server's tools.
pub const DISCOVERY_SPAN: &str = "discovery";

/// The value of [`METHOD`] of listings.
pub const METHOD_TOOLS_LIST: &str = "tools/list";
/// The value of [`OPERATION`].
pub const OPERATION_EXECUTE_TOOL: &str = "execute_tool";
/// The value of [`TOOL_TYPE`].
pub const TOOL_TYPE_FUNCTION: &str = "function";
/// [`ERROR_TYPE`] of an answer with `isError: true`.
pub const ERROR_TOOL: &str = "tool_error";
/// The value of [`OTEL_STATUS`] of an error.
pub const STATUS_ERROR: &str = "ERROR";

/// The value of [`OTEL_KIND`] of a call that came as an MCP request.
pub const KIND_SERVER: &str = "server";
/// The value of [`OTEL_KIND`] of a span that is sent as an MCP request.
pub const KIND_CLIENT: &str = "client";
/// The value of [`OTEL_KIND`] of everything else.
pub const KIND_INTERNAL: &str = "internal";

/// A span: its name, its kinds and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanName {
    /// As subscribers of `tracing` know it.
    pub name: &'static str,
    /// The values of [`OTEL_KIND`] it may have.
    pub kinds: &'static [&'static str],
    /// When there is one.
    pub meaning: &'static str,
}

/// Every span.
pub const SPANS: &[SpanName] = &[
    SpanName {
        name: CALL_SPAN,
        kinds: &[KIND_SERVER, KIND_INTERNAL],
        meaning: "One for each call, from arrival to answer, also if the cache answers or a layer refuses.",
    },
    SpanName {
        name: ATTEMPT_SPAN,
        kinds: &[KIND_CLIENT, KIND_INTERNAL],
        meaning: "One for each attempt of a call, retries and hedges included, below the call's span.",
    },
    SpanName {
        name: DISCOVERY_SPAN,
        kinds: &[KIND_CLIENT, KIND_INTERNAL],
        meaning: "One for each listing of a server's tools.",
    },
];

/// A field of a span: its name, the spans that have it, and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// As subscribers and OpenTelemetry know it.
    pub name: &'static str,
    /// The names of the spans that may have it.
    pub spans: &'static [&'static str],
    /// Its meaning in a line.
    pub meaning: &'static str,
}

/// Writes each name once: as a constant, and as an element of [`ALL`].
macro_rules! fields {
    ($($name:ident = $text:literal in $spans:expr, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: &str = $text;
        )*

        /// Every field of a span.
        pub const ALL: &[Field] = &[$(Field { name: $text, spans: $spans, meaning: $meaning }),*];
    };
}

const CALL: &[&str] = &[CALL_SPAN];
const ATTEMPT: &[&str] = &[ATTEMPT_SPAN];
const DISCOVERY: &[&str] = &[DISCOVERY_SPAN];
const CALL_AND_ATTEMPT: &[&str] = &[CALL_SPAN, ATTEMPT_SPAN];
const CLIENT_SPANS: &[&str] = &[ATTEMPT_SPAN, DISCOVERY_SPAN];
const EACH: &[&str] = &[CALL_SPAN, ATTEMPT_SPAN, DISCOVERY_SPAN];

fields! {
    OTEL_NAME = "otel.name" in EACH, "The name that OpenTelemetry shows: the method of an MCP request, with the tool of `tools/call`; `execute_tool {tool}` of a call within the process.";
    OTEL_KIND = "otel.kind" in EACH, "`server` of an MCP request received, `client` of one sent, otherwise `internal`.";
    OTEL_STATUS = "otel.status_code" in EACH, "`ERROR` for an error; absent for the caller's own fault (-32700, -32600, -32601, -32602, -32002) on a span of kind `server`.";
    METHOD = "mcp.method.name" in EACH, "The MCP method.";
    OPERATION = "gen_ai.operation.name" in CALL_AND_ATTEMPT, "`execute_tool`, of a call of a tool.";
    TOOL = "gen_ai.tool.name" in CALL_AND_ATTEMPT, "The tool's name; bounded, as only known tools are called.";
    TOOL_TYPE = "gen_ai.tool.type" in CALL, "`function`, of a call within the process.";
    TOOL_DESCRIPTION = "gen_ai.tool.description" in CALL, "The first 1,024 bytes of the tool's description, of a call within the process.";
    CALL_ID = "gen_ai.tool.call.id" in CALL, "The model's id of the call.";
    ARGUMENTS = "gen_ai.tool.call.arguments" in CALL, "The arguments as JSON, redacted; only if configured, and never of a restricted tool.";
    RESULT = "gen_ai.tool.call.result" in CALL, "The result as JSON, redacted; only if configured, and never of a restricted tool.";
    REQUEST_ID = "jsonrpc.request.id" in EACH, "The id of the MCP request: of an attempt or a listing the first one sent.";
    PROTOCOL_VERSION = "mcp.protocol.version" in EACH, "The MCP revision of the request (`2025-11-25`).";
    SESSION_ID = "mcp.session.id" in EACH, "The MCP session, of HTTP in revisions up to 2025-11-25.";
    TRANSPORT = "network.transport" in EACH, "The transport of the MCP request: `pipe` or `tcp`.";
    PROTOCOL = "network.protocol.name" in EACH, "`http` of a request by HTTP.";
    PROTOCOL_HTTP_VERSION = "network.protocol.version" in EACH, "The version of HTTP (`1.1`).";
    CLIENT_ADDRESS = "client.address" in CALL, "The client's address, of a call by TCP.";
    CLIENT_PORT = "client.port" in CALL, "The client's port.";
    SERVER_ADDRESS = "server.address" in CLIENT_SPANS, "The server's host, if it is reached by HTTP.";
    SERVER_PORT = "server.port" in CLIENT_SPANS, "The server's port.";
    ERROR_TYPE = "error.type" in EACH, "The error as a word of a bounded set: `tool_error` of a result with `isError`, a well-known JSON-RPC or HTTP code, or the kind of the failure.";
    STATUS_CODE = "rpc.response.status_code" in EACH, "The code of the JSON-RPC error.";
    SERVER_SET = "callward.server_set" in CALL, "The replica set that offers the tool.";
    ANNOTATIONS = "callward.annotations" in CALL, "The hints that the plan is derived from.";
    EFFECT = "callward.effect" in CALL, "The effect: `read_only`, `idempotent`, `mutating` or `destructive`.";
    PLAN = "callward.plan" in CALL, "The plan of the call.";
    PLAN_REASON = "callward.plan.reason" in CALL, "The reason for the effect.";
    CONFIRM = "callward.confirm" in CALL, "`ask` if the plan requires confirmation, otherwise `skip`.";
    CACHE = "callward.cache" in CALL, "What the cache did: `bypass`, `hit`, `stale`, `joined`, `miss` or `invalidated`.";
    CACHE_BYPASS_REASON = "callward.cache.bypass_reason" in CALL, "The reason of a `bypass`.";
    ATTEMPTS = "callward.attempts" in CALL, "The number of attempts.";
    HEDGE = "callward.hedge" in CALL, "The outcome of hedging: `sent` or `won`.";
    GUARDED = "callward.guarded" in CALL, "`true` if the loop guard answered.";
    DECISIONS = "callward.decisions" in CALL, "The decisions about the call with their reasons, as `callward explain` shows them.";
    ATTEMPT_NUMBER = "callward.attempt.number" in ATTEMPT, "The number of the attempt, from 1.";
    SERVER = "callward.server" in EACH, "The server; of a call, the last one chosen.";
    ROUTE_REASON = "callward.route.reason" in CALL_AND_ATTEMPT, "The reason for that server, or for none.";
    ROUTE_STRATEGY = "callward.route.strategy" in ATTEMPT, "The strategy that chose it.";
    ROUTE_RULE = "callward.route.rule" in ATTEMPT, "The plan's requirements and preferences, which precede the strategy.";
    ROUTE_CANDIDATES = "callward.route.candidates" in ATTEMPT, "The candidates with weight and the reasons against them, at most eight.";
    ROUTE_ALTERNATES = "callward.route.alternates" in ATTEMPT, "The next best servers, at most four.";
    DELIVERY = "callward.delivery" in ATTEMPT, "The delivery of the attempt: `answered`, `not_sent` or `unknown`.";
    TOOLS = "callward.discovery.tools" in DISCOVERY, "The number of tools listed.";
    DURATION_MS = "duration_ms" in EACH, "The duration in milliseconds.";
}
