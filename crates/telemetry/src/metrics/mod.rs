//! Metrics of calls, and what metrics of others are made with.

mod by_tool;
mod observe;
mod requests;

use std::time::Duration;

use callward_core::{
    CacheStatus, CallFacts, ConfirmOutcome, ConfirmRule, Effect, ErrorKind, HedgeStatus, Method,
    ReplicaSetId, ServerId, Tool, ToolName, is_invisible, written_out,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Counter, Histogram, Meter};

use crate::call_span::ObservedCall;
use crate::error_type::{Ending, of_ending};
use crate::names;
use crate::names::metric::{self, Metric, OPERATION_BUCKETS, OWN_BUCKETS, label};
use by_tool::ByTool;

pub use observe::{Series, observe_counter, observe_gauge, observe_seconds, overflow};

/// Counts and measures each call.
///
/// | metric | kind | by |
/// | --- | --- | --- |
/// | `mcp.server.operation.duration` | histogram, s | tool, set, cache, error type |
/// | `gen_ai.execute_tool.duration` | histogram, s | tool, set, cache, error type |
/// | `mcp.client.operation.duration` | histogram, s | method, tool, set, server, error type |
/// | `mcp.server.session.duration`, `mcp.client.session.duration` | histogram, s | transport |
/// | `callward.calls` | counter | tool, set, effect, cache, error type |
/// | `callward.attempts` | counter | tool, set, server, error type |
/// | `callward.confirm.outcomes` | counter | tool, set, outcome |
/// | `callward.overhead.duration` | histogram, s | cache |
/// | `callward.limit.wait.duration` | histogram, s | |
/// | `callward.retry.backoff.duration` | histogram, s | |
///
/// A call is in exactly one of the first two: in the first if it came over MCP. MCP requests and
/// sessions are recorded where this is the
/// [`PeerObserver`](callward_core::PeerObserver) of MCP servers and clients.
///
/// **Confirmations.** A call whose plan, or a rule, wants approval counts by what came of it;
/// `unasked` where the runtime asks no one.
///
/// **Overhead** is a call's duration without the time at a server and in queues of limits. It is
/// recorded for hits, and for calls of one attempt whose plan asks no person and that did not join
/// another call; the waiting of others would hide it.
///
/// **Cardinality.** Tools are known, servers and sets are configured, and `error.type` is bounded.
/// Sessions and principals are never attributes. The SDK's limit holds (2,000 series per metric
/// by default); what exceeds it is summed under `otel.metric.overflow`.
#[derive(Debug)]
pub struct Metrics {
    calls: Counter<u64>,
    attempts: Counter<u64>,
    confirmations: Counter<u64>,
    /// Requests of MCP clients, and calls among them.
    served: Histogram<f64>,
    /// Calls from within this process.
    executed: Histogram<f64>,
    /// Requests to MCP servers.
    sent: Histogram<f64>,
    served_sessions: Histogram<f64>,
    sent_sessions: Histogram<f64>,
    overhead: Histogram<f64>,
    limit_wait: Histogram<f64>,
    backoff: Histogram<f64>,
    of_calls: ByTool<Outcome, OfCalls>,
    of_attempts: ByTool<(Option<ServerId>, Option<&'static str>), BoundCounter<u64>>,
    /// Calls to MCP servers.
    of_sent: ByTool<(Option<ServerId>, Option<&'static str>), BoundHistogram<f64>>,
}

/// The attributes of a call that ended, except for its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Outcome {
    is_served: bool,
    effect: Effect,
    cache: CacheStatus,
    error: Option<&'static str>,
}

/// The series of calls of one tool with one outcome.
struct OfCalls {
    calls: BoundCounter<u64>,
    duration: BoundHistogram<f64>,
    overhead: BoundHistogram<f64>,
}

impl Metrics {
    /// Makes the instruments on this meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let operation = |metric| histogram(meter, metric, &OPERATION_BUCKETS);
        let own = |metric| histogram(meter, metric, &OWN_BUCKETS);
        Self {
            calls: counter(meter, metric::CALLS),
            attempts: counter(meter, metric::ATTEMPTS),
            confirmations: counter(meter, metric::CONFIRM_OUTCOMES),
            served: operation(metric::SERVER_OPERATION_DURATION),
            executed: operation(metric::EXECUTE_TOOL_DURATION),
            sent: operation(metric::CLIENT_OPERATION_DURATION),
            served_sessions: operation(metric::SERVER_SESSION_DURATION),
            sent_sessions: operation(metric::CLIENT_SESSION_DURATION),
            overhead: own(metric::OVERHEAD_DURATION),
            limit_wait: own(metric::LIMIT_WAIT_DURATION),
            backoff: own(metric::RETRY_BACKOFF_DURATION),
            of_calls: ByTool::new(),
            of_attempts: ByTool::new(),
            of_sent: ByTool::new(),
        }
    }

    /// Records one call and its attempts.
    pub(crate) fn record(
        &self,
        call: &ObservedCall,
        facts: &CallFacts,
        ending: Ending<'_>,
        took: Duration,
    ) {
        let mut last_attempt = None;
        for attempt in &facts.attempts {
            last_attempt = Some(attempt.took);
            let error = attempt.error.map(ErrorKind::as_str);
            let outcome = (attempt.server.clone(), error);
            let new = || {
                let attributes = of_request(&call.tool, attempt.server.as_ref(), error);
                self.attempts.bind(&attributes)
            };
            self.of_attempts
                .with(&call.tool, outcome, new, |series| series.add(1));
        }
        let outcome = Outcome {
            is_served: call.is_served,
            effect: call.effect,
            cache: facts.cache,
            error: of_ending(ending),
        };
        let new = || self.of_calls(&call.tool, outcome);
        self.of_calls.with(&call.tool, outcome, new, |series| {
            series.calls.add(1);
            series.duration.record(took.as_secs_f64());
            // a cancelled call, and one that asks a person, wait for others
            if ending.is_some()
                && call.confirm == ConfirmRule::Skip
                && facts.confirmation.is_none()
                && let Some(overhead) = overhead(facts, took, last_attempt)
            {
                series.overhead.record(overhead.as_secs_f64());
            }
        });
        if call.confirm != ConfirmRule::Skip || facts.confirmation.is_some() {
            let (tool, set) = (of_tool(call.tool.name()), of_set(call.tool.set()));
            let confirmation = facts.confirmation.as_ref();
            let outcome = confirmation.map_or_else(ConfirmOutcome::default, |it| it.outcome);
            let outcome = KeyValue::new(label::OUTCOME, outcome.as_str());
            self.confirmations.add(1, &[tool, set, outcome]);
        }
        for (waited, histogram) in [
            (facts.limit_time, &self.limit_wait),
            (facts.pause_time, &self.backoff),
        ] {
            if !waited.is_zero() {
                histogram.record(waited.as_secs_f64(), &[]);
            }
        }
    }

    fn of_calls(&self, tool: &Tool, outcome: Outcome) -> OfCalls {
        let cache = KeyValue::new(names::CACHE, outcome.cache.as_str());
        let mut common = vec![of_tool(tool.name()), of_set(tool.set()), cache.clone()];
        common.extend(outcome.error.map(of_error));
        let with = |more: &[KeyValue]| [&common, more].concat();
        let called = tool.definition.method;
        let mut call = Vec::new();
        call.extend((called == Method::CallTool).then(operation));
        let duration = match outcome.is_served {
            true => {
                call.push(method(called.as_str()));
                self.served.bind(&with(&call))
            }
            false => self.executed.bind(&with(&call)),
        };
        let effect = KeyValue::new(names::EFFECT, outcome.effect.as_str());
        OfCalls {
            calls: self.calls.bind(&with(&[effect])),
            duration,
            overhead: self.overhead.bind(&[cache]),
        }
    }
}

/// Returns what the runtime itself added to a call, where that can be known.
fn overhead(facts: &CallFacts, took: Duration, last_attempt: Option<Duration>) -> Option<Duration> {
    match facts.cache {
        CacheStatus::Joined => return None,
        CacheStatus::Hit => return Some(took),
        _ if facts.started_attempts != 1 || facts.hedge != HedgeStatus::None => return None,
        _ => {}
    }
    // where the server's own time is not measured, the attempt's stands for it
    let attempt = last_attempt?;
    let elsewhere = match facts.server_time {
        Duration::ZERO => attempt,
        server => server.saturating_add(facts.limit_time),
    };
    Some(took.saturating_sub(elsewhere))
}

/// Returns the attribute that names a tool; of one that is offered, as others may be made up.
#[must_use]
pub fn of_tool(tool: &ToolName) -> KeyValue {
    KeyValue::new(names::TOOL, written_out(tool.as_str(), is_invisible))
}

/// Returns the attribute that names a replica set.
#[must_use]
pub fn of_set(set: &ReplicaSetId) -> KeyValue {
    KeyValue::new(names::SERVER_SET, set.to_string())
}

/// Returns the attribute that names a server.
#[must_use]
pub fn of_server(server: &ServerId) -> KeyValue {
    KeyValue::new(names::SERVER, server.to_string())
}

/// Returns the attributes of a tool's request to a server.
fn of_request(
    tool: &Tool,
    server: Option<&ServerId>,
    error: Option<&'static str>,
) -> Vec<KeyValue> {
    let mut attributes = vec![of_tool(tool.name()), of_set(tool.set())];
    attributes.extend(server.map(of_server));
    attributes.extend(error.map(of_error));
    attributes
}

fn of_error(word: &'static str) -> KeyValue {
    KeyValue::new(names::ERROR_TYPE, word)
}

fn operation() -> KeyValue {
    KeyValue::new(names::OPERATION, names::OPERATION_EXECUTE_TOOL)
}

fn method(method: &'static str) -> KeyValue {
    KeyValue::new(names::METHOD, method)
}

/// Makes a counter that exists from the start: Prometheus then sees its first increment.
fn counter(meter: &Meter, metric: Metric) -> Counter<u64> {
    let counter = meter
        .u64_counter(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .build();
    counter.add(0, &[overflow()]);
    counter
}

/// Makes a histogram with these upper bounds.
fn histogram(meter: &Meter, metric: Metric, bounds: &[f64]) -> Histogram<f64> {
    meter
        .f64_histogram(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .with_boundaries(bounds.to_vec())
        .build()
}
