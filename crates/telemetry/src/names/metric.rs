//! Every metric: its name, kind, unit and description.
//!
//! Names that start with `mcp.` or `gen_ai.` are those of the OpenTelemetry conventions; ours start
//! with `callward.`. Prometheus writes a point as an underscore, adds the unit, and `_total` to
//! counters: `callward.cache.saved` is `callward_cache_saved_seconds_total` there.

use crate::names;

pub mod label;

/// The upper bounds that the conventions advise for operations and sessions, in seconds.
pub const OPERATION_BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// The upper bounds of what the runtime adds, in seconds. From a microsecond up: the lowest advised
/// bound is a thousand times what we add.
pub const OWN_BUCKETS: [f64; 16] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1.0, 10.0,
];

/// The description of a metric. [`ALL`] has ours; an embedding program may describe its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others describe metrics too")]
pub struct Metric {
    /// The name in OpenTelemetry.
    pub name: &'static str,
    /// What its values mean.
    pub kind: Kind,
    /// In UCUM: `s` for seconds, `By` for bytes, `{call}` for a count. Empty without a unit.
    pub unit: &'static str,
    /// One line.
    pub description: &'static str,
    /// The attributes its series may have, beside
    /// [`OVERFLOW`](label::OVERFLOW), which any may have.
    pub labels: &'static [&'static str],
}

/// What the values of a metric mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Only grows, until a restart.
    Counter,
    /// A current value.
    Gauge,
    /// The number of values in each of several ranges.
    Histogram,
}

impl Kind {
    /// Returns the word that Prometheus writes after `# TYPE`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Writes each metric as a constant, and all of them as [`ALL`].
macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal $unit:literal [$($label:expr),*] $description:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`, ", stringify!($kind), ": ", $description, ".")]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                unit: $unit,
                description: $description,
                labels: &[$($label),*],
            };
        )*
        /// All of them, in the order of the names.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    APPROVAL_DELIVERIES = Counter "callward.approval.deliveries" "{delivery}" [label::OUTCOME]
        "Attempts to send a state of an approval to the webhook: delivered or failed; lost ones are given up";
    ATTEMPTS = Counter "callward.attempts" "{attempt}" [names::TOOL, names::SERVER_SET, names::SERVER, names::ERROR_TYPE]
        "Attempts that ended";
    AUDIT_FAILING = Gauge "callward.audit.failing" "" []
        "1 while the audit log cannot be written";
    AUDIT_RECORDS = Counter "callward.audit.records" "{record}" [label::RESULT]
        "Audit records, by outcome";
    AUDIT_REFUSED_CALLS = Counter "callward.audit.refused_calls" "{call}" []
        "Calls that were refused because their audit record could not have been written";
    AUTH_REFUSALS = Counter "callward.auth.refusals" "{request}" [label::REASON]
        "Requests refused for their credential, by reason";
    BREAKER_REFUSALS = Counter "callward.breaker.refusals" "{call}" [label::SCOPE, names::SERVER, names::TOOL]
        "Calls that open or half-open breakers refused";
    BREAKER_STATE = Gauge "callward.breaker.state" "" [label::SCOPE, names::SERVER, names::TOOL, label::STATE]
        "1 for the state a breaker is in";
    BREAKER_TRANSITIONS = Counter "callward.breaker.transitions" "{transition}" [label::SCOPE, names::SERVER, names::TOOL, label::STATE]
        "How often breakers entered a state";
    CACHE_BYPASSES = Counter "callward.cache.bypasses" "{call}" [names::TOOL, names::SERVER_SET, label::REASON]
        "Calls sent without a look-up, by reason";
    CACHE_CHECKS = Counter "callward.cache.checks" "{call}" [names::TOOL, names::SERVER_SET, label::RESULT]
        "Hits that were executed instead of answered, to verify the kept result";
    CACHE_ENTRIES = Gauge "callward.cache.entries" "{result}" []
        "Results the cache holds";
    CACHE_EVICTIONS = Counter "callward.cache.evictions" "{result}" [label::REASON]
        "Results dropped, by cause";
    CACHE_INVALIDATIONS = Counter "callward.cache.invalidations" "{call}" [names::TOOL, names::SERVER_SET]
        "Writes that dropped results";
    CACHE_LIFETIME = Gauge "callward.cache.lifetime" "s" [names::TOOL, names::SERVER_SET]
        "How long results are served, of tools whose lifetime is learned; 0 while evidence allows none";
    CACHE_LOOKUPS = Counter "callward.cache.lookups" "{call}" [names::TOOL, names::SERVER_SET, label::RESULT]
        "Lookups, by result";
    CACHE_REFRESHES = Counter "callward.cache.refreshes" "{call}" [names::TOOL, names::SERVER_SET, label::RESULT]
        "Calls that fetch a new result for a stale one";
    CACHE_REFUSALS = Counter "callward.cache.refusals" "{result}" [names::TOOL, names::SERVER_SET, label::REASON]
        "Results not kept, by reason";
    CACHE_REPEATS = Counter "callward.cache.repeats" "{call}" [names::TOOL, names::SERVER_SET, label::RESULT]
        "Repeated executions that evidence counts, by whether the answer was the same; kept when the gateway restarts";
    CACHE_RESCUES = Counter "callward.cache.rescues" "{call}" [names::TOOL, names::SERVER_SET]
        "Failures answered with the last result, stale";
    CACHE_SAVED = Counter "callward.cache.saved" "s" [names::TOOL, names::SERVER_SET]
        "Upstream time that was not spent";
    CACHE_SIZE = Gauge "callward.cache.size" "By" []
        "Size of what the cache holds";
    CACHE_STORED = Counter "callward.cache.stored" "{result}" [names::TOOL, names::SERVER_SET]
        "Results stored";
    CACHE_UNSETTLED = Gauge "callward.cache.unsettled" "{state}" []
        "Scopes that ended writes may still change, and whose results are not served";
    CALLS = Counter "callward.calls" "{call}" [names::TOOL, names::SERVER_SET, names::EFFECT, names::CACHE, names::ERROR_TYPE]
        "Calls that ended";
    CALLS_IN_FLIGHT = Gauge "callward.calls.in_flight" "{call}" []
        "Calls that arrived and are not answered yet";
    CONFIRM_OUTCOMES = Counter "callward.confirm.outcomes" "{call}" [names::TOOL, names::SERVER_SET, label::OUTCOME]
        "Calls that need approval: approved, denied, waiting, expired, withdrawn, used or unasked";
    DISCOVERY_LISTINGS = Counter "callward.discovery.listings" "{listing}" [names::SERVER, names::SERVER_SET, label::RESULT]
        "Listings of a server's tools that ended";
    DISCOVERY_TOOLS = Gauge "callward.discovery.tools" "{tool}" [names::SERVER_SET]
        "Tools that clients see, by replica set";
    HEDGES_SENT = Counter "callward.hedges.sent" "{attempt}" []
        "Second attempts that ran beside a slow first";
    HEDGES_UNSENT = Counter "callward.hedges.unsent" "{attempt}" [label::REASON]
        "Second attempts that were due and not sent, by reason";
    HEDGES_WON = Counter "callward.hedges.won" "{attempt}" []
        "Second attempts that answered first";
    LIMIT_WAIT_DURATION = Histogram "callward.limit.wait.duration" "s" []
        "How long admitted calls waited for a rate or concurrency limit";
    LOOP_GUARD_ANSWERS = Counter "callward.loop_guard.answers" "{call}" []
        "Calls that kept failing, and that the loop guard answered";
    LOOP_GUARD_CALLS_HELD = Gauge "callward.loop_guard.calls_held" "{call}" []
        "Failing calls that are remembered";
    OVERHEAD_DURATION = Histogram "callward.overhead.duration" "s" [names::CACHE]
        "What the runtime itself added to a call";
    QUESTIONS = Counter "callward.questions" "{question}" [label::KIND, label::OUTCOME]
        "Questions of the gateway to persons at clients that ended, by outcome";
    RATE_LIMIT_CALLS_WAITING = Gauge "callward.rate_limit.calls_waiting" "{call}" [label::SCOPE, names::TOOL, names::SERVER_SET, names::SERVER]
        "Calls in the queue of a rate limit";
    RATE_LIMIT_DELAYS = Counter "callward.rate_limit.delays" "{call}" [label::SCOPE, names::TOOL, names::SERVER_SET, names::SERVER]
        "Calls that waited and were admitted";
    RATE_LIMIT_REFUSALS = Counter "callward.rate_limit.refusals" "{call}" [label::SCOPE, names::TOOL, names::SERVER_SET, names::SERVER, label::REASON]
        "Calls refused because they would have waited too long, or by a limit of `[principals]`, which is the reason";
    RETRY_BACKOFF_DURATION = Histogram "callward.retry.backoff.duration" "s" []
        "How long calls with retries paused, all pauses of a call together";
    RETRY_BUDGET_REFUSALS = Counter "callward.retry.budget.refusals" "{attempt}" [names::SERVER_SET]
        "Retries and hedges that the budget refused";
    RETRY_BUDGET_TOKENS = Gauge "callward.retry.budget.tokens" "{attempt}" [names::SERVER_SET]
        "Retries and hedges that the budget of a replica set allows now";
    RETRY_OUTCOMES = Counter "callward.retry.outcomes" "{call}" [label::OUTCOME]
        "Calls whose first attempt failed, by outcome";
    RETRY_REPEATS = Counter "callward.retry.repeats" "{attempt}" []
        "Attempts after a call's first";
    ROUTER_CALLS = Counter "callward.router.calls" "{call}" [names::SERVER, names::SERVER_SET, label::OUTCOME]
        "Calls that were routed to a server and ended, by outcome";
    ROUTER_CALLS_IN_FLIGHT = Gauge "callward.router.calls_in_flight" "{call}" [names::SERVER, names::SERVER_SET]
        "Calls that were routed to a server and have not ended, waiting ones included";
    ROUTER_STATE = Gauge "callward.router.state" "" [names::SERVER, names::SERVER_SET, label::STATE]
        "1 for the state of a server";
    ROUTER_WEIGHT = Gauge "callward.router.weight" "" [names::SERVER, names::SERVER_SET]
        "Weight of a server, from 0 to 100";
    SERVER_CALLS_IN_FLIGHT = Gauge "callward.server.calls_in_flight" "{call}" [names::SERVER]
        "Calls with a permit of a server";
    SERVER_CALLS_LIMIT = Gauge "callward.server.calls_limit" "{call}" [names::SERVER]
        "Permits of a server, as they are now";
    SERVER_CALLS_REFUSED = Counter "callward.server.calls_refused" "{call}" [names::SERVER, label::REASON]
        "Calls that got no permit of a server or one of its tools: the queue was full, or time ran out";
    SERVER_CALLS_WAITING = Gauge "callward.server.calls_waiting" "{call}" [names::SERVER]
        "Calls that wait for a permit of a server";
    SERVER_UP = Gauge "callward.server.up" "" [names::SERVER, names::SERVER_SET]
        "1 while a server is connected";
    TELEMETRY_SPANS = Counter "callward.telemetry.spans" "{span}" [label::RESULT]
        "Spans that ended, by outcome";
    EXECUTE_TOOL_DURATION = Histogram "gen_ai.execute_tool.duration" "s" [names::OPERATION, names::TOOL, names::SERVER_SET, names::CACHE, names::ERROR_TYPE]
        "How long calls from within this process took, as their caller saw it";
    CLIENT_OPERATION_DURATION = Histogram "mcp.client.operation.duration" "s" [names::METHOD, names::OPERATION, names::TOOL, names::SERVER_SET, names::SERVER, names::ERROR_TYPE]
        "How long requests to MCP servers took: attempts of calls, and listings";
    CLIENT_SESSION_DURATION = Histogram "mcp.client.session.duration" "s" [names::TRANSPORT]
        "How long sessions with MCP servers lasted";
    SERVER_OPERATION_DURATION = Histogram "mcp.server.operation.duration" "s" [names::METHOD, names::OPERATION, names::TOOL, names::SERVER_SET, names::CACHE, names::ERROR_TYPE]
        "How long requests of MCP clients took, as the client saw it";
    SERVER_SESSION_DURATION = Histogram "mcp.server.session.duration" "s" [names::TRANSPORT]
        "How long sessions of MCP clients lasted";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        let names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }

    #[test]
    fn names_and_units_follow_opentelemetry() {
        for metric in ALL {
            let is_of_a_name = |c: char| c.is_ascii_lowercase() || c == '.' || c == '_';
            assert!(metric.name.chars().all(is_of_a_name), "{metric:?}");
            // gauges of unit `1` get `_ratio` in Prometheus, and Prometheus adds `_total` by itself
            assert!(
                metric.unit != "1" && !metric.name.ends_with("total"),
                "{metric:?}"
            );
            assert!(!metric.description.ends_with('.'), "{metric:?}");
        }
    }
}
