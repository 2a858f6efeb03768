//! The policy that `tower::retry` asks after each attempt.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use callward_core::{
    Delivery, ErrorKind, InvalidConfig, ReplicaSetId, ToolCall, ToolError, ToolOutput,
};
use tokio::time::{Instant, sleep};
use tower::retry::Policy;
use tower::retry::budget::Budget;
use tracing::debug;

use crate::budget::Budgets;
use crate::deadline::ends_in_time;
use crate::give::{Reason, given_up, may_have_an_effect, retried};
use crate::pause::{Pause, Returns, Waiting};
use crate::retries::{Retries, is_expected_back, is_refusal};
use crate::share::Paid;
use crate::shared::{Shared, left, retry_of};
use crate::stats::Counters;
use crate::{
    BudgetStatus, MakeSchedule, RetryConfig, RetryDecision, RetryOutcome, RetryStats, Step,
    TokenBucket, classify,
};

/// Decides after each attempt of a call whether and when there is another.
///
/// Tower clones the policy for each call. A clone shares the settings, the budgets and the source of
/// jitter, and knows nothing of any call.
#[derive(Debug)]
pub struct RetryPolicy {
    shared: Arc<Shared>,
    /// The call has paid into the budget: each does so once, after its first attempt.
    paid: bool,
    /// When the running attempt began, if somebody may have to be told.
    sent: Option<Instant>,
    /// How many of the attempts breakers refused, and the call waits for them: they are not counted
    /// among those that are allowed.
    refused: u32,
    /// Made when the first retry is due, so that calls that succeed cost nothing.
    retries: Option<Box<Retries>>,
}

impl RetryPolicy {
    /// Makes a policy of these settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: RetryConfig) -> Result<Self, InvalidConfig> {
        config.validate().map(|()| Self::of_valid(config, None))
    }

    /// Takes the pauses from somebody else's schedule. The budgets of the new policy are its own.
    #[must_use]
    pub fn with_schedule(self, schedule: impl MakeSchedule) -> Self {
        Self::of_valid(self.shared.config, Some(Arc::new(schedule)))
    }

    fn of_valid(config: RetryConfig, schedule: Option<Arc<dyn MakeSchedule>>) -> Self {
        Self {
            shared: Arc::new(Shared {
                config,
                schedule,
                budgets: Budgets::default(),
                seeds: AtomicU64::new(config.seed.unwrap_or_else(|| fastrand::u64(..))),
                counters: Counters::default(),
                returns: Returns::default(),
            }),
            paid: false,
            sent: None,
            refused: 0,
            retries: None,
        }
    }

    pub(crate) fn budgets(&self) -> Vec<BudgetStatus> {
        self.shared.budgets.status()
    }

    pub(crate) fn stats(&self) -> RetryStats {
        self.shared.counters.snapshot()
    }

    pub(crate) fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.shared.budgets.retain(keep);
    }

    /// Wakes calls of the set that wait for a breaker.
    pub(crate) fn server_is_back(&self, set: &ReplicaSetId) {
        self.shared.returns.tell(set);
    }

    /// Says how long the first attempt may take, if the call's deadline has to last for more.
    pub(crate) fn share_out(&self, call: &mut ToolCall) {
        if self.shared.splits(call) {
            self.shared.share_out(call, Instant::now(), false, 0);
        }
    }

    fn pay_once(&mut self, call: &ToolCall) {
        if !std::mem::replace(&mut self.paid, true) {
            self.with_budget(call, TokenBucket::deposit);
        }
    }

    pub(crate) fn with_budget<T>(&self, call: &ToolCall, act: impl FnOnce(&TokenBucket) -> T) -> T {
        let Shared {
            config, budgets, ..
        } = &*self.shared;
        budgets.with(call.tool(), config, act)
    }

    /// Returns the pause before a retry, or why there is none. The budget is asked last: a retry
    /// that is refused for another reason costs nothing.
    fn decide(&mut self, call: &ToolCall, error: &ToolError) -> Result<Pause, Reason> {
        // paid when the attempt was ended for it; put back unless it comes to that
        let share = call.attempt().share.as_ref();
        let paid = share.and_then(|share| share.downcast_ref::<Paid>()?.take());
        let shared = &*self.shared;
        let config = &shared.config;
        let RetryDecision::Retry { floor } = classify(call.plan().retry, error) else {
            return Err(Reason::Rule);
        };
        if call.purpose().is_background() {
            return Err(Reason::Background);
        }
        let waits = error.kind() == ErrorKind::BreakerOpen && floor.is_some();
        if waits && call.deadline().is_some() {
            // the pauses and the deadline bound how often that can be
            self.refused = self.refused.saturating_add(1);
        }
        if call.attempt().number.saturating_sub(self.refused) >= config.max_attempts {
            return Err(Reason::Attempts);
        }
        let longest = config.max_retry_after;
        let floor = match floor {
            Some(stated) if waits => Some(self.wait(call, error, stated)?),
            Some(stated) if stated > longest => {
                return Err(Reason::RetryAfter { stated, longest });
            }
            floor => floor,
        };
        let retries = self
            .retries
            .get_or_insert_with(|| Box::new(Retries::new(shared.schedule(call))));
        let step = Step::new(retry_of(call), call.plan().limits.first_backoff);
        let pause = retries.pauses.next(&step).ok_or(Reason::Schedule)?;
        let limits = &call.plan().limits;
        let usual = limits.estimated_duration;
        let left = left(call, Instant::now);
        let latest = match floor {
            Some(open) if waits => Some(open),
            // the server was lost a moment ago, and whoever knows it says when it is back
            None if is_expected_back(error) && left.is_some() => Some(longest),
            _ => None,
        };
        let pause = match latest {
            Some(latest) => {
                let queue = shared.budgets.queue(call.tool().set(), config);
                let wait = Pause::open(latest, pause, limits.first_backoff, queue);
                match error.reopening() {
                    // that may be at any moment: it is waited for as long as there is time
                    Some(_) => wait.within(left, usual.unwrap_or(limits.first_backoff)),
                    None => wait,
                }
            }
            None => Pause::For(pause.max(floor.unwrap_or_default())),
        };
        if let Some(left) = left
            && !ends_in_time(left, pause.longest(), usual)
        {
            let pause = pause.longest();
            return Err(Reason::Deadline { left, pause, usual });
        }
        if waits && !retries.got_out() {
            // no server has seen the call: when it is sent at last, that is no retry. And who only
            // waits takes nothing from those who have something to retry
            return Ok(pause);
        }
        retries.hold = paid.or_else(|| shared.hold(call));
        retries.hold.as_ref().map(|_| pause).ok_or(Reason::Budget)
    }

    /// Returns how long a call waits for a breaker at most that refused it and stated this time, or why
    /// it does not.
    fn wait(
        &self,
        call: &ToolCall,
        error: &ToolError,
        stated: Duration,
    ) -> Result<Duration, Reason> {
        let longest = self.shared.config.max_retry_after;
        // one breaker after the other would be waited for until the deadline, which may be far off
        let waited = self.retries.as_ref().map(|retries| retries.waited());
        let waited = waited.unwrap_or_default();
        let patience = longest.saturating_sub(waited);
        let may_be_sooner = error.reopening().is_some() && !patience.is_zero();
        if stated > longest && !may_be_sooner {
            return Err(Reason::RetryAfter { stated, longest });
        }
        if call.deadline().is_none() {
            return Err(Reason::Open { stated });
        }
        if stated > patience && !may_be_sooner {
            return Err(Reason::StillOpen { waited, stated });
        }
        Ok(stated.min(patience))
    }

    /// Makes the next attempt of the call of the failed one. It begins after the pause, or if it
    /// `waits`, at any moment of it.
    fn advance(&mut self, call: &mut ToolCall, error: &ToolError, pause: Duration, waits: bool) {
        if let Some(retries) = &mut self.retries {
            retries.note(error, pause);
        }
        if let Some(record) = call.record()
            && error.delivery() != Delivery::NotSent
        {
            record.note_retry();
        }
        call.attempt_mut().advance(error.server());
        if self.shared.splits(call) {
            let begin = Instant::now() + if waits { Duration::ZERO } else { pause };
            self.shared.share_out(call, begin, waits, self.refused);
        }
    }
}

/// A clone is for another call.
impl Clone for RetryPolicy {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            paid: false,
            // tower sends the first attempt before it clones
            sent: self.sent,
            refused: 0,
            retries: None,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::of_valid(RetryConfig::default(), None)
    }
}

impl Policy<ToolCall, ToolOutput, ToolError> for RetryPolicy {
    /// Boxed, as few calls have a pause and all would carry the timer's bytes.
    type Future = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn retry(
        &mut self,
        call: &mut ToolCall,
        result: &mut Result<ToolOutput, ToolError>,
    ) -> Option<Self::Future> {
        self.pay_once(call);
        // an `isError` is an answer, and passes here
        let Err(error) = result else {
            if self.retries.is_some() {
                self.shared.counters.ends(RetryOutcome::Recovered);
            }
            return None;
        };
        let was_paid = self
            .retries
            .as_ref()
            .is_some_and(|retries| retries.was_paid);
        if was_paid && is_refusal(error) {
            // it cost no server anything
            self.with_budget(call, TokenBucket::refund);
        }
        match self.decide(call, error) {
            Ok(pause) => {
                self.shared.counters.retries();
                debug!(
                    tool = %call.tool().name(),
                    attempt = call.attempt().number,
                    error = %error.kind(),
                    pause_ms = pause.longest().as_secs_f64() * 1000.0,
                    "retries a failed call"
                );
                Some(match pause {
                    Pause::For(time) => {
                        call.decided(|| retried(error, time));
                        if let Some(record) = call.record() {
                            record.spent().add_pause(time);
                        }
                        self.advance(call, error, time, false);
                        Box::pin(sleep(time))
                    }
                    Pause::Open(open) => {
                        let set = call.tool().set();
                        let over = self.shared.returns.wait(set, &open, error.reopening());
                        let longest = open.longest();
                        let waiting = Waiting::begin(call, error, open);
                        self.advance(call, error, longest, true);
                        Box::pin(async move {
                            over.await;
                            drop(waiting);
                        })
                    }
                })
            }
            Err(reason) => {
                self.shared.counters.ends(RetryOutcome::from(&reason));
                debug!(
                    tool = %call.tool().name(),
                    attempt = call.attempt().number,
                    error = %error.kind(),
                    ?reason,
                    "does not retry a failed call"
                );
                call.decided(|| reason.decision(call, error));
                let retries = self.retries.take();
                let told = given_up(call, error.clone(), &reason, retries.as_deref(), self.sent);
                *result = Err(told);
                None
            }
        }
    }

    /// Every call is kept, also one that is never retried: its failure may have to be told as
    /// [`ErrorKind::OutcomeUnknown`]. It costs a few pointers. Tower asks for this just before it
    /// sends an attempt, so here a retry is made that was only paid for until now.
    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        if let Some(hold) = self
            .retries
            .as_mut()
            .and_then(|retries| retries.end_pause())
        {
            hold.spend();
        }
        // only of these it may have to be told when they were sent
        self.sent = may_have_an_effect(call).then(Instant::now);
        Some(call.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use callward_testkit::{call, tool};
    use serde_json::json;

    use super::*;
    use crate::{Backoff, Jitter};

    fn pauses(policy: &RetryPolicy) -> Vec<Duration> {
        let call = call(&tool("get").read_only().build(), json!({}));
        let mut running = policy.shared.schedule(&call);
        let pause = |retry| running.next(&Step::new(retry, Duration::ZERO)).unwrap();
        (0..4).map(pause).collect()
    }

    #[test]
    fn no_two_calls_share_a_sequence_nor_a_pause() {
        for jitter in [Jitter::Decorrelated, Jitter::Equal, Jitter::Full] {
            let backoff = Backoff::new(jitter, Duration::from_secs(10));
            let config = RetryConfig::default().with_backoff(backoff).with_seed(1);
            let policy = RetryPolicy::new(config).unwrap();
            let all: Vec<_> = (0..500).flat_map(|_| pauses(&policy)).collect();
            // with nanoseconds to choose from, one meeting by chance is possible, two are not
            let different = all.iter().collect::<HashSet<_>>().len();
            assert!(all.len() - different < 2, "{jitter:?}: {different} differ");
        }
    }

    #[test]
    fn layers_without_a_seed_differ() {
        assert_ne!(
            pauses(&RetryPolicy::default()),
            pauses(&RetryPolicy::default())
        );
    }
}
