//! Every name of a metric.

/// Histogram, seconds: how long calls took, by tool, effect, cache status and error type.
pub const OPERATION_DURATION: &str = "mcp.server.operation.duration";
/// Counter: calls that ended.
pub const CALLS_COUNT: &str = "tollgate.calls";
/// Counter: attempts that ended, by server.
pub const ATTEMPTS_COUNT: &str = "tollgate.attempts";
/// Histogram, seconds: what the runtime itself added to a call.
pub const OVERHEAD_DURATION: &str = "tollgate.overhead.duration";
/// Counter: spans that ended, by what became of them.
pub const TELEMETRY_SPANS: &str = "tollgate.telemetry.spans";
/// Attribute of [`TELEMETRY_SPANS`]: `exported`, `dropped` or `failed`.
pub const SPAN_RESULT: &str = "result";
