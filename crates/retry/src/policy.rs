//! The policy that `tower::retry` asks after each attempt.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use tokio::time::Instant;
use tower::retry::Policy;
use tracing::debug;

use crate::attempts::{Attempts, is_own_refusal};
use crate::budget::{Hold, Waiting};
use crate::deadline::ends_in_time;
use crate::failure::{Stop, may_have_an_effect, rounded};
use crate::pause::Pause;
use crate::share::PaidShare;
use crate::shared::{Shared, first_backoff, retry_of, time_left};
use crate::{RetryDecision, RetryOutcome, Step, classify};

/// Decides after each attempt of a call whether and when there is another.
///
/// Tower clones the policy for each call. Clones share settings, budgets and the source of jitter.
#[derive(Debug)]
pub struct RetryPolicy {
    pub(crate) shared: Arc<Shared>,
    /// The call has paid into the budget, as each does once.
    paid: bool,
    /// When the current attempt was sent, if it may have an effect.
    sent: Option<Instant>,
    /// How many attempts breakers refused. They are not counted among those allowed.
    refused: u32,
    /// Made when the first attempt has failed.
    attempts: Option<Box<Attempts>>,
}

impl RetryPolicy {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            paid: false,
            sent: None,
            refused: 0,
            attempts: None,
        }
    }

    /// Returns the pause before a retry, or why there is none. The budget comes last: a retry that
    /// is refused for another reason takes no token.
    fn decide(&mut self, call: &ToolCall, error: &ToolError) -> Result<Pause, Stop> {
        // taken at the end of the attempt's share
        let share = call.attempt().share.as_ref();
        let share = share.map(|share| &**share as &dyn Any);
        let hold = share.and_then(|share| share.downcast_ref::<PaidShare>()?.hold.lock().take());
        let shared = self.shared.clone();
        let config = &shared.config;
        let RetryDecision::Retry { floor } = classify(call.plan().retry, error) else {
            return Err(RetryOutcome::NotRetryable.into());
        };
        if call.has_asked() {
            let why = "its client was asked for input, and is not asked again".to_owned();
            return Err(Stop::because(RetryOutcome::NotRetryable, why));
        }
        if shared.is_stopped.load(Ordering::Relaxed) {
            let why = "the servers are about to end".to_owned();
            return Err(Stop::because(RetryOutcome::NotRetryable, why));
        }
        if call.is_background {
            return Err(RetryOutcome::Background.into());
        }
        let left = time_left(call);
        let waits_for_breaker = error.kind == ErrorKind::BreakerOpen && floor.is_some();
        if waits_for_breaker && left.is_some() {
            self.refused = self.refused.saturating_add(1);
        }
        if call.attempt().number.saturating_sub(self.refused) >= config.max_attempts {
            return Err(RetryOutcome::Exhausted.into());
        }
        let wait = self.wait(error, floor, left)?;
        let attempts = self
            .attempts
            .get_or_insert_with(|| Box::new(Attempts::new(shared.pauses(call))));
        let step = Step::new(retry_of(call), first_backoff(call));
        let rest = if waits_for_breaker {
            // nothing was sent since the last pause, so it does not grow
            shared.pauses(call).next(&Step::new(0, step.first))
        } else {
            attempts.pauses.next(&step)
        };
        let rest = rest.ok_or_else(|| {
            let why = "the schedule has no further pause".to_owned();
            Stop::because(RetryOutcome::Schedule, why)
        })?;
        let usual = call.plan().limits.estimated_duration;
        let mut pause = match wait {
            Some(wait) => {
                // of the calls that wait together, one comes in the first step, two in the next,
                // then four: if the first fails, the breaker opens before the others come
                let (waiting, before) = Waiting::join(shared.bucket(call));
                let steps = before.saturating_add(1).ilog2();
                Pause {
                    wait,
                    rest: rest.saturating_add(step.first.saturating_mul(steps)),
                    waiting: Some(waiting),
                }
            }
            None => Pause {
                wait: Duration::ZERO,
                rest: rest.max(floor.unwrap_or_default()),
                waiting: None,
            },
        };
        if let Some(left) = left {
            if error.reopening.is_some() {
                // it may end at any moment, so it is worth all the time there is
                let needed = pause.rest.saturating_add(usual.unwrap_or(step.first));
                pause.wait = pause.wait.min(left.saturating_sub(needed));
            }
            if !ends_in_time(left, pause.longest(), usual) {
                let usual = usual.map(rounded);
                let usual = usual.map(|usual| format!(" and the usual {usual:?} of a call"));
                let why = format!(
                    "a pause of {:?}{} would not end before the call's deadline, {:?} away",
                    rounded(pause.longest()),
                    usual.unwrap_or_default(),
                    rounded(left)
                );
                return Err(Stop::because(RetryOutcome::Deadline, why));
            }
        }
        if waits_for_breaker && !attempts.reached_a_server {
            // no server has seen the call: its next attempt is not extra load
            return Ok(pause);
        }
        attempts.hold = hold.or_else(|| Hold::take(shared.bucket(call)));
        if attempts.hold.is_none() {
            let set = call.tool().set();
            let why = format!("the retry budget of replica set `{set}` is spent");
            return Err(Stop::because(RetryOutcome::Budget, why));
        }
        Ok(pause)
    }

    /// Returns how long the call waits for a breaker, or for a server that restarts. `None` if it
    /// waits for neither.
    fn wait(
        &self,
        error: &ToolError,
        floor: Option<Duration>,
        left: Option<Duration>,
    ) -> Result<Option<Duration>, Stop> {
        let longest = self.shared.config.max_retry_after;
        let Some(stated) = floor else {
            let restarts = error.kind == ErrorKind::ConnectFailed && error.reopening.is_some();
            return Ok((restarts && left.is_some()).then_some(longest));
        };
        let is_open = error.kind == ErrorKind::BreakerOpen;
        // all waits of a call together are no longer than one may be
        let waited = self.attempts.as_ref().map(|attempts| attempts.waited);
        let waited = waited.unwrap_or_default();
        let patience = longest.saturating_sub(waited);
        let may_end_early = is_open && error.reopening.is_some() && !patience.is_zero();
        if stated > longest && !may_end_early {
            let (stated, longest) = (rounded(stated), rounded(longest));
            let why =
                format!("it may be retried after {stated:?}, and the longest wait is {longest:?}");
            return Err(Stop::because(RetryOutcome::RetryAfter, why));
        }
        if !is_open {
            return Ok(None);
        }
        let why = match left {
            None => "it has no deadline to wait until".to_owned(),
            Some(_) if stated > patience && !may_end_early => {
                format!("it has waited for {:?} already", rounded(waited))
            }
            Some(_) => return Ok(Some(stated.min(patience))),
        };
        let why = format!(
            "no server takes the call for {:?}, and {why}",
            rounded(stated)
        );
        Err(Stop::because(RetryOutcome::BreakerOpen, why))
    }

    /// Makes the call of the next attempt, and the future of the pause before it.
    fn advance(
        &mut self,
        call: &mut ToolCall,
        error: &ToolError,
        pause: Pause,
    ) -> impl Future<Output = ()> + Send + use<> {
        let longest = pause.longest();
        if let Some(attempts) = &mut self.attempts {
            attempts.add(error, longest);
        }
        if let Some(record) = call.record.as_ref()
            && error.delivery != Delivery::NotSent
        {
            record.with(|facts| facts.is_resent = true);
        }
        let pause = pause.after(call, error);
        // a server whose breaker refused the call did not fail it
        let failed = error.server.as_ref();
        let failed = failed.filter(|_| error.kind != ErrorKind::BreakerOpen);
        call.attempt_mut().advance(failed);
        let begin = Instant::now() + longest;
        self.shared.share_out(call, begin, self.refused);
        pause
    }
}

/// A clone is for another call.
impl Clone for RetryPolicy {
    fn clone(&self) -> Self {
        Self {
            // tower sends the first attempt before it clones
            sent: self.sent,
            ..Self::new(self.shared.clone())
        }
    }
}

impl Policy<ToolCall, ToolOutput, ToolError> for RetryPolicy {
    type Future = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn retry(
        &mut self,
        call: &mut ToolCall,
        result: &mut Result<ToolOutput, ToolError>,
    ) -> Option<Self::Future> {
        if !std::mem::replace(&mut self.paid, true) {
            self.shared.bucket(call).deposit();
        }
        // an `isError` is an answer
        let Err(error) = result else {
            if self.attempts.is_some() {
                let mut stats = self.shared.stats.lock();
                stats.outcomes.count(RetryOutcome::Recovered);
            }
            return None;
        };
        let was_paid = self.attempts.as_ref().is_some_and(|made| made.was_paid);
        if was_paid && is_own_refusal(error) {
            // it was no load on a server
            self.shared.bucket(call).refund();
        }
        let decided = self.decide(call, error);
        debug!(
            tool = %call.tool().name(),
            attempt = call.attempt().number,
            error = %error.kind,
            ?decided,
            "an attempt failed"
        );
        match decided {
            Ok(pause) => {
                self.shared.stats.lock().retries += 1;
                Some(Box::pin(self.advance(call, &error.clone(), pause)))
            }
            Err(stop) => {
                self.shared.stats.lock().outcomes.count(stop.outcome);
                call.decided(|| stop.decision(call, error));
                let attempts = self.attempts.take();
                *error = stop.fail(call, error.clone(), attempts.as_deref(), self.sent);
                None
            }
        }
    }

    /// Clones each call, also one that is never retried: its failure may become
    /// [`ErrorKind::OutcomeUnknown`]. Tower asks just before it sends an attempt, so a retry spends
    /// its token here.
    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        let attempts = self.attempts.as_mut();
        if let Some(hold) = attempts.and_then(|attempts| attempts.end_pause()) {
            hold.spend();
        }
        self.sent = may_have_an_effect(call).then(Instant::now);
        Some(call.clone())
    }
}
