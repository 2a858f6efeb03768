//! What is counted and measured of each call.

use std::borrow::Cow;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use tollgate_core::{CacheStatus, CallRecord, ConfirmRule, Effect, Tool};

use crate::error_type::Ending;
use crate::names;

/// The instruments of the runtime.
///
/// | metric | kind | by |
/// | --- | --- | --- |
/// | `mcp.server.operation.duration` | histogram, s | method, tool, set, effect, cache, error type |
/// | `tollgate.calls` | counter | the same |
/// | `tollgate.attempts` | counter | tool, set, server, error type |
/// | `tollgate.overhead.duration` | histogram, s | cache |
///
/// **Overhead** is a call's duration less the time its attempts took. It is only recorded where
/// that is our own work: for hits, and for calls of exactly one attempt that asked nobody and
/// waited for no other call. Pauses before repeats, humans and joined calls would drown it.
///
/// Cardinality: calls exist only for tools that are known, servers and sets are configured, and
/// `error.type` is bounded. Sessions and principals are never attributes.
#[derive(Debug)]
pub struct Metrics {
    duration: Histogram<f64>,
    overhead: Histogram<f64>,
    calls: Counter<u64>,
    attempts: Counter<u64>,
}

/// The buckets that the conventions advise for operations, in seconds.
const OPERATION_BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// From a microsecond up: the lowest advised bucket is a thousand times what we add.
const OVERHEAD_BUCKETS: [f64; 14] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1,
];

impl Metrics {
    /// Makes the instruments on this meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        Self {
            duration: meter
                .f64_histogram(names::metric::OPERATION_DURATION)
                .with_unit("s")
                .with_description("How long calls took, as the caller saw it")
                .with_boundaries(OPERATION_BUCKETS.to_vec())
                .build(),
            overhead: meter
                .f64_histogram(names::metric::OVERHEAD_DURATION)
                .with_unit("s")
                .with_description("What the runtime itself added to a call")
                .with_boundaries(OVERHEAD_BUCKETS.to_vec())
                .build(),
            calls: meter
                .u64_counter(names::metric::CALLS_COUNT)
                .with_unit("{call}")
                .with_description("Calls that ended")
                .build(),
            attempts: meter
                .u64_counter(names::metric::ATTEMPTS_COUNT)
                .with_unit("{attempt}")
                .with_description("Attempts that ended")
                .build(),
        }
    }

    /// Records one call.
    pub(crate) fn record(&self, call: &Ended<'_>) {
        let cache = KeyValue::new(names::CACHE, call.record.cache().as_str());
        let tool = KeyValue::new(names::TOOL, call.tool.name().as_str().to_owned());
        let set = KeyValue::new(names::SERVER_SET, call.tool.set().as_str().to_owned());

        let attempts = call.record.attempts();
        for attempt in &attempts {
            let mut by = vec![tool.clone(), set.clone()];
            if let Some(server) = &attempt.server {
                by.push(KeyValue::new(names::SERVER, server.as_str().to_owned()));
            }
            if let Some(error) = attempt.error {
                by.push(KeyValue::new(names::ERROR_TYPE, error.as_str()));
            }
            self.attempts.add(1, &by);
        }

        let in_attempts = attempts.iter().map(|attempt| attempt.took).sum();
        if call.is_all_ours(attempts.len()) {
            let overhead = call.took.saturating_sub(in_attempts);
            let by = std::slice::from_ref(&cache);
            self.overhead.record(overhead.as_secs_f64(), by);
        }

        let effect = call.effect.as_str();
        let mut by = vec![
            KeyValue::new(names::METHOD, names::METHOD_TOOLS_CALL),
            KeyValue::new(names::EFFECT, effect),
            tool,
            set,
            cache,
        ];
        if let Some(error_type) = &call.error_type {
            by.push(KeyValue::new(names::ERROR_TYPE, error_type.clone()));
        }
        self.duration.record(call.took.as_secs_f64(), &by);
        self.calls.add(1, &by);
    }
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) tool: &'a Tool,
    /// Of the call's plan, which is not always the tool's own.
    pub(crate) effect: Effect,
    pub(crate) confirm: ConfirmRule,
    pub(crate) record: &'a CallRecord,
    pub(crate) ending: Ending<'a>,
    pub(crate) error_type: Option<Cow<'static, str>>,
    pub(crate) took: Duration,
}

impl Ended<'_> {
    /// Says whether all time outside of the attempts was spent by the runtime itself.
    fn is_all_ours(&self, attempts: usize) -> bool {
        let asked_nobody = self.confirm == ConfirmRule::Skip;
        match (self.ending, self.record.cache()) {
            (Ending::Cancelled, _) | (_, CacheStatus::Joined) => false,
            (_, CacheStatus::Hit) => asked_nobody,
            _ => asked_nobody && attempts == 1 && self.record.started_attempts() == 1,
        }
    }
}
