//! Every name of a span, a field or a metric.
//!
//! Names that start with `gen_ai.` or `mcp.`, and `error.type`, are those of the OpenTelemetry
//! semantic conventions for generative AI and MCP. These have status *Development*: they may still
//! change, and this file is the one place to follow them. There are no conventional names for
//! cache, retry, routing and confirmation; ours start with `tollgate.`.

pub mod metric;

/// The target of all spans, for filters such as `tollgate=info`.
pub const TARGET: &str = "tollgate";

/// The span of a call. Its display name, with the tool in it, is in [`OTEL_NAME`].
pub const CALL_SPAN: &str = "execute_tool";
/// The span of one attempt.
pub const ATTEMPT_SPAN: &str = "attempt";

/// The span name that exporters to OpenTelemetry show: `tools/call {tool}`. The name of a
/// `tracing` span is static, so it has to be a field.
pub const OTEL_NAME: &str = "otel.name";
/// The MCP method: always [`METHOD_TOOLS_CALL`].
pub const METHOD: &str = "mcp.method.name";
/// The value of [`METHOD`].
pub const METHOD_TOOLS_CALL: &str = "tools/call";
/// The operation: always [`OPERATION_EXECUTE_TOOL`].
pub const OPERATION: &str = "gen_ai.operation.name";
/// The value of [`OPERATION`].
pub const OPERATION_EXECUTE_TOOL: &str = "execute_tool";
/// The tool's name. Only tools that are known are called, so the set of values is bounded.
pub const TOOL: &str = "gen_ai.tool.name";
/// What went wrong, as one word of a bounded set. Absent if nothing did.
pub const ERROR_TYPE: &str = "error.type";
/// [`ERROR_TYPE`] of an answer with `isError: true`.
pub const ERROR_TOOL: &str = "tool_error";

/// The replica set that offers the tool.
pub const SERVER_SET: &str = "tollgate.server_set";
/// What the call may do: `read_only`, `idempotent`, `mutating` or `destructive`.
pub const EFFECT: &str = "tollgate.effect";
/// Whether a human is asked: `ask` or `skip`.
pub const CONFIRM: &str = "tollgate.confirm";
/// Why the effect is what it is.
pub const PLAN_REASON: &str = "tollgate.plan.reason";
/// What the cache did: `bypass`, `hit`, `stale`, `joined`, `miss` or `invalidated`.
pub const CACHE: &str = "tollgate.cache";
/// Why the cache sent the call without a look-up, as one word of a bounded set. Absent otherwise.
pub const CACHE_BYPASS_REASON: &str = "tollgate.cache.bypass_reason";
/// How many attempts were started.
pub const ATTEMPTS: &str = "tollgate.attempts";
/// What became of a second attempt beside a slow first: `sent` or `won`. Absent if there was none.
pub const HEDGE: &str = "tollgate.hedge";
/// `true` if the loop guard answered in the server's place. Absent otherwise.
pub const GUARDED: &str = "tollgate.guarded";
/// Which attempt it is, from 1.
pub const ATTEMPT_NUMBER: &str = "tollgate.attempt.number";
/// The server chosen last.
pub const SERVER: &str = "tollgate.server";
/// Why that server, or why none.
pub const ROUTE_REASON: &str = "tollgate.route.reason";
/// The name of the strategy that chose it.
pub const ROUTE_STRATEGY: &str = "tollgate.route.strategy";
/// What the plan demands of servers and prefers, in words: it comes before the strategy.
pub const ROUTE_RULE: &str = "tollgate.route.rule";
/// Servers that were looked at, each with its weight and what speaks against it: at most eight.
pub const ROUTE_CANDIDATES: &str = "tollgate.route.candidates";
/// Servers that would be asked next, best first: at most four. Absent where there are none.
pub const ROUTE_ALTERNATES: &str = "tollgate.route.alternates";
/// How far an attempt got: `answered`, `not_sent` or `unknown`.
pub const DELIVERY: &str = "tollgate.delivery";
/// What became of a span that ended: `exported`, `dropped` or `failed`.
pub const SPAN_RESULT: &str = "result";
/// From start to end, in milliseconds.
pub const DURATION_MS: &str = "duration_ms";
