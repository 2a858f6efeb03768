//! What is counted and measured of each call, and what metrics of others are made with.

mod instrument;
mod instruments;
mod of_tool;
mod peers;
mod recorder;
mod series;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use callward_core::{CacheStatus, CallRecord, ConfirmRule, Effect, HedgeStatus, Tool};
use opentelemetry::metrics::Meter;

use crate::error_type::Ending;
use crate::names::metric::{self, Metric};
use instruments::Instruments;
pub(crate) use instruments::Origin;
use of_tool::{OfTool, Outcome};
use tools::{Tell, Tools};

pub use instrument::{observe_counter, observe_gauge, observe_seconds};
pub use series::{Series, overflow};

/// What is counted and measured of each call.
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
/// A call is in exactly one of the first two: in that of the server if it came over MCP, and else in
/// that of the tool's execution. What is asked of MCP servers, what clients ask that is no call, and
/// sessions are recorded where this is given to upstreams and faces as their
/// [`PeerObserver`](callward_core::PeerObserver).
///
/// **Confirmations** are counted where the plan asks a person, and where somebody was asked all the same:
/// `approved` and `refused` are what an [`Approval`](callward_core::Approval) on the call's record says;
/// `unasked` is a call whose plan asks while nobody says anything. Calls whose plan asks nobody are in
/// `callward.calls` alone.
///
/// **Overhead** is a call's duration less the time a server had it, and less what it waited for limits.
/// It is only recorded where that is our own work: for hits, and for calls of exactly one attempt that
/// asked nobody and waited for no other call. Humans, joined calls and timers would drown it.
///
/// **Cardinality.** Calls exist only for tools that are known, servers and sets are configured, and
/// `error.type` is bounded. Sessions and principals are never attributes. Of counters, at most
/// [`Series::MOST`] series are told one by one, and those of a tool that is gone end; of histograms, as
/// many as the SDK's limit says, 2,000 where nothing else was set. What is beyond comes together under
/// `otel.metric.overflow`. The SDK keeps the histograms of tools that are gone, as they were, where
/// values add up over time; where they are told as differences they end.
///
/// **Cost.** A call finds its series by the tool's address, without a hash, and without a lock if it was
/// answered. With the feature `bound` the SDK does not look them up either.
#[derive(Debug)]
pub struct Metrics {
    tools: Arc<Tools>,
}

impl Metrics {
    /// Makes the instruments on this meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let tools = Arc::new(Tools::new(Instruments::new(meter)));
        let counters: [(Metric, Read); 3] = [
            (metric::CALLS, OfTool::calls),
            (metric::ATTEMPTS, OfTool::attempts),
            (metric::CONFIRM_OUTCOMES, OfTool::confirmations),
        ];
        for (counter, read) in counters {
            let tools = Arc::downgrade(&tools);
            observe_counter(meter, counter, move |series| {
                // it is there from the start
                series.add(0, [overflow()]);
                if let Some(tools) = tools.upgrade() {
                    tools.tell(series, read);
                }
            });
        }
        Self { tools }
    }

    /// Records one call.
    pub(crate) fn record(&self, call: &Ended<'_>) {
        let instruments = &self.tools.instruments;
        let cache = call.record.cache();
        let outcome = Outcome {
            origin: call.origin,
            effect: call.effect,
            cache,
            error: call.error_type,
        };
        let was_sent = call.record.started_attempts() > 0;
        let mut last_took = None;
        self.tools.with(call.tool, |of| {
            of.record(call.tool, outcome, instruments, call.took.as_secs_f64());
            if let Some(said) = call.confirmed() {
                of.confirmed(said);
            }
            if was_sent {
                call.record.each_attempt(|attempt| {
                    of.count(attempt);
                    last_took = Some(attempt.took);
                });
            }
        });
        if let Some(overhead) = call.overhead(cache, last_took) {
            instruments.overhead(cache, overhead);
        }
        if cache != CacheStatus::Hit {
            instruments.waits(call.record.spent());
        }
    }
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) tool: &'a Arc<Tool>,
    pub(crate) origin: Origin,
    /// Of the call's plan, which is not always the tool's own.
    pub(crate) effect: Effect,
    pub(crate) confirm: ConfirmRule,
    pub(crate) record: &'a CallRecord,
    pub(crate) ending: Ending<'a>,
    pub(crate) error_type: Option<&'static str>,
    pub(crate) took: Duration,
}

/// Tells of one counter of a tool.
type Read = fn(&OfTool, &mut Tell<'_>);

impl Ended<'_> {
    /// Returns what was said to the call, where a person is to agree to it or did.
    fn confirmed(&self) -> Option<&'static str> {
        match (self.record.approval(), self.confirm) {
            (Some(approval), _) => Some(approval.verdict.as_str()),
            (None, ConfirmRule::Skip) => None,
            (None, _) => Some(UNASKED),
        }
    }

    /// Returns what the runtime itself added, where that can be told. The last attempt took so long, if
    /// one ended.
    fn overhead(&self, cache: CacheStatus, last_took: Option<Duration>) -> Option<Duration> {
        let asked_nobody = self.confirm == ConfirmRule::Skip;
        let cancelled = matches!(self.ending, Ending::Cancelled);
        match cache {
            _ if cancelled || !asked_nobody => None,
            CacheStatus::Joined => None,
            CacheStatus::Hit => Some(self.took),
            _ => self.overhead_of_one_attempt(last_took?),
        }
    }

    fn overhead_of_one_attempt(&self, took: Duration) -> Option<Duration> {
        let record = self.record;
        if record.started_attempts() != 1 || record.hedge() != HedgeStatus::None {
            return None;
        }
        // where nobody takes the server's own time, that of the attempt stands for it
        let spent = record.spent();
        let elsewhere = match spent.server() {
            Duration::ZERO => took,
            server => server.saturating_add(spent.limits()),
        };
        Some(self.took.saturating_sub(elsewhere))
    }
}

/// [`OUTCOME`](metric::label::OUTCOME) of a call whose plan asks a person, where nobody was asked.
const UNASKED: &str = "unasked";
