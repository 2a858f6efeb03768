//! The policy that `tower::retry` asks after each attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tollgate_core::{Delivery, ErrorKind, InvalidConfig, ToolCall, ToolError, ToolOutput};
use tower::retry::Policy;
use tower::retry::budget::Budget;
use tracing::debug;

use crate::backoff::{Step, delay};
use crate::budget::Budgets;
use crate::{BudgetStatus, RetryConfig, TokenBucket, Verdict, classify};

/// Decides after each attempt of a call whether and when there is another.
///
/// Tower clones the policy for each call, so a clone holds what is known of one call, and shares
/// the rest: the settings, the budgets and the source of jitter.
#[derive(Debug, Clone)]
pub struct RepeatPolicy {
    shared: Arc<Shared>,
    /// The call has paid into the budget: each does so once, after its first attempt.
    paid: bool,
    /// An attempt before this one may have run.
    may_have_run: bool,
    /// Drawn when the first repeat is due, so that calls that succeed draw nothing.
    schedule: Option<Schedule>,
}

/// What all calls share.
#[derive(Debug)]
struct Shared {
    config: RetryConfig,
    budgets: Budgets,
    seeds: AtomicU64,
}

/// The pauses of one call.
#[derive(Debug, Clone)]
struct Schedule {
    rng: fastrand::Rng,
    previous: Duration,
}

/// What to do about a failure, everything considered.
enum Decision {
    Give(Reason),
    RepeatAfter(Duration),
}

/// Why a failure is given to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Attempts,
    Background,
    Budget,
    Deadline,
    RetryAfter,
    Rule,
}

impl RepeatPolicy {
    /// Makes a policy of these settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: RetryConfig) -> Result<Self, InvalidConfig> {
        config.validate().map(|()| Self::of_valid(config))
    }

    fn of_valid(config: RetryConfig) -> Self {
        Self {
            shared: Arc::new(Shared {
                config,
                budgets: Budgets::default(),
                seeds: AtomicU64::new(config.seed.unwrap_or_else(|| fastrand::u64(..))),
            }),
            paid: false,
            may_have_run: false,
            schedule: None,
        }
    }

    pub(crate) fn budgets(&self) -> Vec<BudgetStatus> {
        self.shared.budgets.status()
    }

    /// Takes from the budget what a call costs that nobody would miss, before its first attempt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RateLimited`], not sent, if the budget is spent.
    pub(crate) fn admit(&self, call: &ToolCall) -> Result<(), ToolError> {
        if !call.purpose().is_extra() || self.with_budget(call, TokenBucket::withdraw) {
            return Ok(());
        }
        let message = format!(
            "the retry budget of replica set `{}` is spent, so no call is sent only to {}",
            call.tool().set(),
            call.purpose()
        );
        Err(ToolError::new(
            ErrorKind::RateLimited,
            Delivery::NotSent,
            message,
        ))
    }

    fn pay_once(&mut self, call: &ToolCall) {
        // what is made at the cost of repeats pays for none
        if !std::mem::replace(&mut self.paid, true) && !call.purpose().is_extra() {
            self.with_budget(call, TokenBucket::deposit);
        }
    }

    pub(crate) fn with_budget<T>(&self, call: &ToolCall, act: impl FnOnce(&TokenBucket) -> T) -> T {
        let Shared {
            config, budgets, ..
        } = &*self.shared;
        budgets.with(call.tool().set(), config, act)
    }

    /// The budget is asked last: a repeat that is refused for another reason costs nothing.
    fn decide(&mut self, call: &ToolCall, error: &ToolError) -> Decision {
        let config = &self.shared.config;
        let Verdict::Repeat { floor } = classify(call.plan().repeat, error) else {
            return Decision::Give(Reason::Rule);
        };
        if call.purpose().is_background() {
            return Decision::Give(Reason::Background);
        }
        if call.attempt().number >= config.max_attempts {
            return Decision::Give(Reason::Attempts);
        }
        if floor > Some(config.max_retry_after) {
            return Decision::Give(Reason::RetryAfter);
        }
        let pause = self.next_pause(call, floor);
        if !ends_in_time(call, pause) {
            return Decision::Give(Reason::Deadline);
        }
        if !self.with_budget(call, TokenBucket::withdraw) {
            return Decision::Give(Reason::Budget);
        }
        Decision::RepeatAfter(pause)
    }

    fn next_pause(&mut self, call: &ToolCall, floor: Option<Duration>) -> Duration {
        let shared = &self.shared;
        let schedule = self.schedule.get_or_insert_with(|| shared.schedule());
        let step = Step {
            repeat: call.attempt().number.saturating_sub(1),
            first: call.plan().limits.first_backoff,
            previous: schedule.previous,
            floor,
        };
        schedule.previous = delay(&shared.config.backoff, &step, &mut schedule.rng);
        schedule.previous
    }
}

impl Default for RepeatPolicy {
    fn default() -> Self {
        Self::of_valid(RetryConfig::default())
    }
}

impl Policy<ToolCall, ToolOutput, ToolError> for RepeatPolicy {
    type Future = Sleep;

    fn retry(
        &mut self,
        call: &mut ToolCall,
        result: &mut Result<ToolOutput, ToolError>,
    ) -> Option<Sleep> {
        self.pay_once(call);
        // an `isError` is an answer, and passes here
        let error = result.as_ref().err()?;
        match self.decide(call, error) {
            Decision::RepeatAfter(pause) => {
                debug!(
                    tool = %call.tool().name(),
                    attempt = call.attempt().number,
                    error = %error.kind(),
                    pause_ms = pause.as_secs_f64() * 1000.0,
                    "repeats a failed call"
                );
                if error.delivery() != Delivery::NotSent {
                    self.may_have_run = true;
                    if let Some(record) = call.record() {
                        record.note_repeat();
                    }
                }
                call.attempt_mut().advance(error.server());
                Some(sleep(pause))
            }
            Decision::Give(reason) => {
                debug!(
                    tool = %call.tool().name(),
                    attempt = call.attempt().number,
                    error = %error.kind(),
                    ?reason,
                    "does not repeat a failed call"
                );
                let mut error = error.clone();
                if self.may_have_run && error.delivery() == Delivery::NotSent {
                    // true of the last attempt, but not of the call
                    error = error.with_delivery(Delivery::Unknown);
                }
                *result = Err(given_up(call, error, reason));
                None
            }
        }
    }

    /// Every call is kept, also one that is never repeated: its failure may have to be told as
    /// [`ErrorKind::OutcomeUnknown`]. It costs a few pointers.
    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}

impl Shared {
    /// No two calls get the same numbers: the seeds are a counter, scattered one to one.
    fn schedule(&self) -> Schedule {
        let seed = self.seeds.fetch_add(1, Ordering::Relaxed);
        Schedule {
            rng: fastrand::Rng::with_seed(scatter(seed)),
            previous: Duration::ZERO,
        }
    }
}

/// Sends neighbouring numbers far apart, no two to the same place (the finisher of SplitMix64). The
/// generator adds a constant for each draw, so neighbouring seeds alone could overlap.
const fn scatter(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Says whether a repeat after this pause would begin before the deadline.
fn ends_in_time(call: &ToolCall, pause: Duration) -> bool {
    call.deadline().is_none_or(|deadline| {
        Instant::now()
            .into_std()
            .checked_add(pause)
            .is_some_and(|begin| begin < deadline)
    })
}

/// Turns the last failure into what the caller gets.
fn given_up(call: &ToolCall, error: ToolError, reason: Reason) -> ToolError {
    let attempts = call.attempt().number.max(error.attempts());
    let error = error.with_attempts(attempts);
    let name = call.tool().name();
    if !call.plan().is_repeatable()
        && error.delivery() == Delivery::Unknown
        && error.kind() != ErrorKind::OutcomeUnknown
    {
        let message = format!(
            "`{name}` was sent, and no answer came: it may have run; it was not sent again; check \
             what it did before calling it again"
        );
        return error.into_kind(ErrorKind::OutcomeUnknown, message);
    }
    if reason == Reason::Budget {
        // the kind stays; who reads only the message must still learn what failed
        let message = format!(
            "{}; not repeated: the retry budget of replica set `{}` is spent",
            error.message(),
            call.tool().set()
        );
        let kind = error.kind();
        return error.into_kind(kind, message);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_calls_share_a_sequence() {
        let policy = RepeatPolicy::new(RetryConfig::default().with_seed(1)).unwrap();
        let draws: HashSet<_> = (0..1000)
            .map(|_| policy.shared.schedule().rng.u64(..))
            .collect();
        assert_eq!(draws.len(), 1000);
    }

    #[test]
    fn layers_without_a_seed_differ() {
        let first = || RepeatPolicy::default().shared.schedule().rng.u64(..);
        assert_ne!(first(), first());
    }
}
