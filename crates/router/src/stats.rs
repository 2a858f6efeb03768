//! What is known of each server, in numbers.

use std::collections::VecDeque;
use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use tokio::time::Instant;

use crate::endpoint::Endpoint;
use crate::ewma::PeakEwma;
use crate::outcome::Outcome;

/// The servers of one replica set, in numbers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SetStats {
    /// The replica set.
    pub set: ReplicaSetId,
    /// Its servers, heaviest first.
    pub servers: Vec<ServerStats>,
}

/// One server in numbers.
///
/// The time of a call is that from giving it to the server, its breaker, rate limit and queue
/// included, to the answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerStats {
    /// The server.
    pub server: ServerId,
    /// Its weight, 0 to 100.
    pub weight: u32,
    /// Whether it gets no new calls because it is to leave.
    pub draining: bool,
    /// Calls in flight there.
    pub in_flight: usize,
    /// How its calls ended since it was added.
    pub totals: Totals,
    /// The share of faults, 0 to 1, among the latest 1,000 answers and faults; `None` if there was
    /// neither.
    pub error_rate: Option<f64>,
    /// The same, of all calls since it was added.
    pub error_rate_ever: Option<f64>,
    /// How long a call takes: a mean in which the latest count most and peaks
    /// count at once, as the default strategy sees it. `None` if none has ended lately.
    pub ewma: Option<Duration>,
    /// Half of the answers among the latest 1,000 answers and faults took no longer. Faults do not
    /// count, so a server that fails fast does not look fast.
    pub p50: Option<Duration>,
    /// 99 of 100 of these answers took no longer.
    pub p99: Option<Duration>,
}

impl ServerStats {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let tally = endpoint.state.tally.lock();
        let totals = tally.totals;
        let mut answers: Vec<Duration> = tally.recent.iter().copied().flatten().collect();
        let faults = (tally.recent.len() - answers.len()) as u64;
        drop(tally);
        answers.sort_unstable();
        let percentile = |percent: usize| {
            let rank = (answers.len() * percent).div_ceil(100).max(1);
            answers.get(rank - 1).copied()
        };
        Self {
            server: endpoint.server().clone(),
            weight: endpoint.weight().get(),
            draining: endpoint.is_draining(),
            in_flight: endpoint.in_flight(),
            totals,
            error_rate: rate(faults, answers.len() as u64),
            error_rate_ever: rate(totals.faults, totals.answers),
            ewma: endpoint.latency(),
            p50: percentile(50),
            p99: percentile(99),
        }
    }
}

/// How calls ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Answered, whatever the answer said.
    pub answers: u64,
    /// The server failed.
    pub faults: u64,
    /// Refused: by our own breaker, queue or rate limit with nothing sent, or by the server, which
    /// asked to come later.
    pub refusals: u64,
    /// Given up by their callers.
    pub cancelled: u64,
}

/// How the calls of one server ended, and how long they took.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    totals: Totals,
    pub(crate) ewma: PeakEwma,
    /// How long the latest answers took; `None` for a fault.
    recent: VecDeque<Option<Duration>>,
}

/// How many answers and faults are kept for percentiles.
const RECENT: usize = 1000;

impl Tally {
    /// Counts a call that ended.
    pub(crate) fn count(&mut self, outcome: Outcome, took: Duration, now: Instant) {
        self.ewma.learn(outcome, took, now);
        let totals = &mut self.totals;
        let kept = match outcome {
            Outcome::Answered => {
                totals.answers += 1;
                Some(took)
            }
            Outcome::Asked => {
                totals.answers += 1;
                return;
            }
            Outcome::Fault => {
                totals.faults += 1;
                None
            }
            Outcome::Refused => {
                totals.refusals += 1;
                return;
            }
            Outcome::Cancelled => {
                totals.cancelled += 1;
                return;
            }
        };
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        if self.recent.is_empty() {
            self.recent.reserve_exact(RECENT);
        }
        self.recent.push_back(kept);
    }
}

fn rate(faults: u64, answers: u64) -> Option<f64> {
    let all = faults + answers;
    (all > 0).then(|| faults as f64 / all as f64)
}
