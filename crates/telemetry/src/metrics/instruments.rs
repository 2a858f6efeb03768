//! The histograms, and the ranges they count in.

use std::sync::OnceLock;
use std::time::Duration;

use callward_core::{CacheStatus, Spent, ToolCall};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};

use super::instrument::histogram;
use super::peers::Peers;
use super::recorder::Recorder;
use crate::names;
use crate::names::metric::{self, OPERATION_BUCKETS, OWN_BUCKETS};

/// The histograms of calls. A series is made with its first value: an empty one says nothing, and its
/// least value would be the greatest number there is.
#[derive(Debug)]
pub(super) struct Instruments {
    over_mcp: Histogram<f64>,
    local: Histogram<f64>,
    /// By the status' number.
    overhead: Box<[OnceLock<Recorder>]>,
    overheads: Histogram<f64>,
    limit_wait: OnceLock<Recorder>,
    backoff: OnceLock<Recorder>,
    limit_waits: Histogram<f64>,
    backoffs: Histogram<f64>,
    pub(super) peers: Peers,
}

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Origin {
    /// From a client, over MCP.
    Mcp = 0,
    /// From this process.
    Local = 1,
}

impl Origin {
    pub(crate) fn of(call: &ToolCall) -> Self {
        match call.inbound() {
            Some(_) => Self::Mcp,
            None => Self::Local,
        }
    }
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        let own = |metric| histogram(meter, metric, &OWN_BUCKETS);
        Self {
            over_mcp: histogram(meter, metric::SERVER_OPERATION_DURATION, &OPERATION_BUCKETS),
            local: histogram(meter, metric::EXECUTE_TOOL_DURATION, &OPERATION_BUCKETS),
            overhead: CacheStatus::ALL.iter().map(|_| OnceLock::new()).collect(),
            overheads: own(metric::OVERHEAD_DURATION),
            limit_wait: OnceLock::new(),
            backoff: OnceLock::new(),
            limit_waits: own(metric::LIMIT_WAIT_DURATION),
            backoffs: own(metric::RETRY_BACKOFF_DURATION),
            peers: Peers::new(meter),
        }
    }

    /// Returns the histogram of what clients ask over MCP.
    pub(super) const fn served(&self) -> &Histogram<f64> {
        &self.over_mcp
    }

    /// Returns the histogram of calls from there, and the attributes that say what kind of operation
    /// each is.
    pub(super) fn of_calls(&self, origin: Origin) -> (&Histogram<f64>, Vec<KeyValue>) {
        let operation = KeyValue::new(names::OPERATION, names::OPERATION_EXECUTE_TOOL);
        match origin {
            Origin::Mcp => {
                let method = KeyValue::new(names::METHOD, names::METHOD_TOOLS_CALL);
                (&self.over_mcp, vec![method, operation])
            }
            Origin::Local => (&self.local, vec![operation]),
        }
    }

    /// Records what the runtime added to a call.
    pub(super) fn overhead(&self, cache: CacheStatus, took: Duration) {
        if let Some(recorder) = self.overhead.get(cache as usize) {
            let make = || {
                let cache = KeyValue::new(names::CACHE, cache.as_str());
                Recorder::new(&self.overheads, &[cache])
            };
            recorder.get_or_init(make).record(took.as_secs_f64());
        }
    }

    /// Records what a call waited for, if it did.
    pub(super) fn waits(&self, spent: &Spent) {
        for (waited, recorder, histogram) in [
            (spent.limits(), &self.limit_wait, &self.limit_waits),
            (spent.pauses(), &self.backoff, &self.backoffs),
        ] {
            if !waited.is_zero() {
                let make = || Recorder::new(histogram, &[]);
                recorder.get_or_init(make).record(waited.as_secs_f64());
            }
        }
    }
}
