//! A limit that follows what the server bears. Pure: a sample and the time in, a limit out.

use std::collections::HashMap;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, InvalidConfig, ToolError, ToolName, ToolOutput};
use tokio::time::Instant;

/// Between which bounds a limit moves, and what makes it move.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AdaptiveConfig {
    /// The limit never falls below. Default: 1.
    pub min: usize,
    /// The limit never rises above. Default: 256.
    pub max: usize,
    /// A call is slow if it takes so many times what its tool usually takes, and 5 ms more.
    /// Default: 2.
    pub tolerance: f64,
    /// The limit is multiplied by this when the server is overloaded. Default: 0.8.
    pub backoff: f64,
}

impl Default for AdaptiveConfig {
    fn default() -> Self {
        Self {
            min: 1,
            max: 256,
            tolerance: 2.0,
            backoff: 0.8,
        }
    }
}

impl AdaptiveConfig {
    /// Sets the bounds.
    #[must_use]
    pub const fn between(mut self, min: usize, max: usize) -> Self {
        self.min = min;
        self.max = max;
        self
    }

    /// Sets from how many times the usual on a call is slow.
    #[must_use]
    pub const fn with_tolerance(mut self, times: f64) -> Self {
        self.tolerance = times;
        self
    }

    /// Sets what the limit is multiplied by when the server is overloaded.
    #[must_use]
    pub const fn with_backoff(mut self, factor: f64) -> Self {
        self.backoff = factor;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if self.min == 0 {
            return fault("min", "is 0; no call would ever run to show that more can");
        }
        if self.max < self.min {
            return fault("max", "is below min");
        }
        if self.max > super::layer::MOST_PLACES {
            return fault("max", "is more than 4294967295");
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 1.1) {
            return fault("tolerance", "is not a number from 1.1 on");
        }
        if !(self.backoff >= 0.1 && self.backoff <= 0.95) {
            return fault("backoff", "is not between 0.1 and 0.95");
        }
        Ok(())
    }
}

/// What the end of a call says about the server's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a call speaks of load by its time, by its failure, or not at all"
)]
pub enum Signal {
    /// The server answered: the time it took counts.
    Answered,
    /// It said that it has too much to do, or did not answer in time.
    Overloaded,
    /// Neither: it failed for another reason, or never got the call.
    Unrelated,
}

impl Signal {
    /// Judges the end of a call.
    #[must_use]
    pub fn of(result: &Result<ToolOutput, ToolError>) -> Self {
        let Err(error) = result else {
            return Self::Answered;
        };
        match (error.kind(), error.delivery()) {
            (ErrorKind::Timeout, Delivery::Unknown) => Self::Overloaded,
            (ErrorKind::Overloaded | ErrorKind::RateLimited, Delivery::Answered) => {
                Self::Overloaded
            }
            _ => Self::Unrelated,
        }
    }
}

/// The end of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "what is measured of a call")]
pub struct Sample {
    /// How long the server had it.
    pub latency: Duration,
    /// What it says about the server's load.
    pub signal: Signal,
    /// How many calls the server had, this one included.
    pub in_flight: usize,
}

/// A limit that follows what the server bears: additive increase, multiplicative decrease.
///
/// **Rule.** A call that times out, or is answered with "too much to do", multiplies the limit by
/// [`backoff`](AdaptiveConfig::backoff). So does a round of calls of which more than half were slow
/// for their tool. After a round that was not, the limit rises by 1, if at least half of it was in
/// use: a limit nobody needs says nothing. A round is as many calls as the limit allows at once,
/// and at least 10; only those count that began after the limit last changed, so that what an old
/// limit did is not held against the new one.
///
/// What a tool usually takes is learnt from its calls, apart from those of other tools: that it
/// falls, quickly and from any call; that it rises, slowly, and only from calls that had at most
/// half of the places beside them, or all if there are no fewer. Else the calls of a server that is
/// made slow by the limit itself would soon be taken for the usual.
#[derive(Debug, Clone)]
pub struct Adaptive {
    config: AdaptiveConfig,
    limit: f64,
    changed: Option<Instant>,
    round: Round,
    /// In seconds.
    usual: HashMap<ToolName, f64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    calls: usize,
    slow: usize,
    most_in_flight: usize,
}

impl Adaptive {
    /// Begins at a limit, as far as it is within the bounds.
    #[must_use]
    pub fn new(config: AdaptiveConfig, start: usize) -> Self {
        let start = start.max(config.min).min(config.max);
        Self {
            limit: start as f64,
            config,
            changed: None,
            round: Round::default(),
            usual: HashMap::new(),
        }
    }

    /// Returns the limit in force.
    #[must_use]
    pub fn limit(&self) -> usize {
        // a float as a number ends at the bounds of the type
        let limit = self.limit as usize;
        limit.max(self.config.min).min(self.config.max)
    }

    /// Learns from the end of a call, and returns the limit from now on.
    pub fn observe(&mut self, tool: &ToolName, sample: Sample, now: Instant) -> usize {
        let began = now.checked_sub(sample.latency);
        let is_old = self
            .changed
            .is_some_and(|at| began.is_none_or(|began| began < at));
        match sample.signal {
            Signal::Unrelated => {}
            Signal::Overloaded if is_old => {}
            Signal::Overloaded => self.back_off(now),
            Signal::Answered => {
                let slow = self.is_slow(tool, sample);
                if !is_old {
                    self.count(slow, sample.in_flight, now);
                }
            }
        }
        self.limit()
    }

    fn count(&mut self, slow: bool, in_flight: usize, now: Instant) {
        let round = &mut self.round;
        round.calls += 1;
        round.slow += usize::from(slow);
        round.most_in_flight = round.most_in_flight.max(in_flight);
        let Round {
            calls,
            slow,
            most_in_flight,
        } = *round;
        let limit = self.limit();
        if calls < limit.max(SHORTEST_ROUND) {
            return;
        }
        if slow.saturating_mul(2) > calls {
            self.back_off(now);
        } else if most_in_flight.saturating_mul(2) >= limit {
            self.change(self.limit + 1.0, now);
        } else {
            self.round = Round::default();
        }
    }

    fn back_off(&mut self, now: Instant) {
        self.change(self.limit * self.config.backoff, now);
    }

    fn change(&mut self, limit: f64, now: Instant) {
        self.limit = limit
            .max(self.config.min as f64)
            .min(self.config.max as f64);
        self.changed = Some(now);
        self.round = Round::default();
    }

    /// Says whether a call was slow for its tool, and learns from it what is usual.
    fn is_slow(&mut self, tool: &ToolName, sample: Sample) -> bool {
        let took = sample.latency.as_secs_f64();
        let limit = self.limit();
        let alone = sample.in_flight.saturating_mul(2) <= limit || limit == self.config.min;
        let Some(usual) = self.usual.get_mut(tool) else {
            if self.usual.len() < MOST_TOOLS {
                self.usual.insert(tool.clone(), took);
            }
            return false;
        };
        let slow = took > *usual * self.config.tolerance && took - *usual > NOTHING;
        let step = match (took < *usual, alone) {
            (true, _) => 0.3,
            (false, true) => 0.01,
            (false, false) => 0.0,
        };
        *usual += (took - *usual) * step;
        slow
    }
}

/// In calls.
const SHORTEST_ROUND: usize = 10;
/// In seconds: what a busy machine alone may add.
const NOTHING: f64 = 0.005;
/// Of more tools, only failures count.
const MOST_TOOLS: usize = 500;

#[cfg(test)]
#[path = "adaptive_tests.rs"]
mod tests;
