//! What is known of each server, in numbers.

mod histogram;
mod recent;
mod tally;

use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::endpoint::Endpoint;
use crate::health::HealthState;

pub(crate) use tally::Tally;

/// The servers of one replica set, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SetStats {
    /// The replica set.
    pub set: ReplicaSetId,
    /// Its servers, heaviest first.
    pub servers: Vec<ServerStats>,
}

/// One server in numbers.
///
/// *Recent* is this minute and the one before it, counted from when the server came. The time of a
/// call is that from giving it to the server, its gates (breaker, rate, queue) included, to the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStats {
    /// The server.
    pub server: ServerId,
    /// Its weight, 0 to 100.
    pub weight: u32,
    /// How much of its weight counts now: less while it starts slowly, and 0 while it is to get no
    /// calls. Breakers, which are asked call by call, do not show here.
    pub weight_in_force: f64,
    /// How it is, breakers aside.
    pub health: HealthState,
    /// Whether it gets no new calls because it is to leave.
    pub draining: bool,
    /// How often it was ejected.
    pub ejections: u64,
    /// Calls given to it that have not ended.
    pub in_flight: usize,
    /// What became of its calls since it is known.
    pub totals: Totals,
    /// The share of faults among answers and faults, 0 to 1, of the recent calls; `None` if there was
    /// neither.
    pub error_rate: Option<f64>,
    /// The same, of all calls since it is known.
    pub error_rate_ever: Option<f64>,
    /// How long a call takes, in milliseconds: a mean in which the latest count most and peaks count
    /// at once, as the default strategy sees it. `None` if none has ended lately.
    #[serde(rename = "ewma_ms", serialize_with = "optional_millis")]
    pub ewma: Option<Duration>,
    /// How long recent answers took, in milliseconds.
    pub latency: Latency,
}

impl ServerStats {
    /// `since` is `now` as what is measured counts it.
    pub(crate) fn of(endpoint: &Endpoint, now: Instant, since: u64) -> Self {
        let state = endpoint.state();
        let totals = state.tally().totals();
        let (error_rate, latency) = state.tally().lately(now);
        let (health, ejections) = match endpoint.health() {
            Some(status) => (status.state, status.ejections),
            None => (HealthState::Healthy, 0),
        };
        let weight = endpoint.weight().get();
        let gets_calls = matches!(health, HealthState::Healthy | HealthState::SlowStart);
        let estimate = state.measured().of_all(since);
        Self {
            server: endpoint.server().clone(),
            weight,
            weight_in_force: match gets_calls && !endpoint.is_draining() {
                true => f64::from(weight) * endpoint.share(),
                false => 0.0,
            },
            health,
            draining: endpoint.is_draining(),
            ejections,
            in_flight: endpoint.in_flight(),
            totals,
            error_rate,
            error_rate_ever: totals.error_rate(),
            ewma: (estimate.trust > 0.0).then(|| Duration::from_nanos(estimate.nanos as u64)),
            latency,
        }
    }
}

/// What became of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Answered, whatever the answer said.
    pub answers: u64,
    /// The server failed.
    pub faults: u64,
    /// Refused: by a gate of our own with nothing sent, or by the server, which told to come later.
    pub refusals: u64,
    /// Given up: nobody waits for them any more.
    pub cancelled: u64,
}

impl Totals {
    /// Returns the share of faults among answers and faults, 0 to 1; `None` if there was neither.
    #[must_use]
    pub fn error_rate(&self) -> Option<f64> {
        rate(self.faults, self.answers)
    }

    /// Returns how many calls have ended, however.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.answers + self.faults + self.refusals + self.cancelled
    }
}

/// How long recent answers took: each at most 6.25 % off, and at most 36 minutes. What was no answer
/// does not count here, so a server that fails fast does not look fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// How many answers this is told of.
    pub answers: u64,
    /// Half of them took no longer.
    #[serde(rename = "p50_ms", serialize_with = "optional_millis")]
    pub p50: Option<Duration>,
    /// 99 of 100 took no longer.
    #[serde(rename = "p99_ms", serialize_with = "optional_millis")]
    pub p99: Option<Duration>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is told in a few digits"
)]
fn rate(faults: u64, answers: u64) -> Option<f64> {
    let all = faults + answers;
    (all > 0).then(|| faults as f64 / all as f64)
}

#[expect(clippy::ref_option, reason = "the shape serde asks for")]
fn optional_millis<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.serialize_f64(time.as_secs_f64() * 1e3),
        None => to.serialize_none(),
    }
}
