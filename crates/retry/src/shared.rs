//! What all calls of one retry layer share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use callward_core::{Limits, Share, ToolCall};
use fastrand::Rng;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::budget::{Budgets, TokenBucket};
use crate::deadline::Outlook;
use crate::share::PaidShare;
use crate::{MakeSchedule, RetryConfig, RetryStats, Schedule};

/// What all calls of one retry layer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RetryConfig,
    pub(crate) schedule: Option<Arc<dyn MakeSchedule>>,
    pub(crate) budgets: Budgets,
    pub(crate) stats: Mutex<RetryStats>,
    /// No call is retried any more.
    pub(crate) is_stopped: AtomicBool,
    /// Seeds the pauses of each call.
    rng: Mutex<Rng>,
}

impl Shared {
    pub(crate) fn new(config: RetryConfig, schedule: Option<Arc<dyn MakeSchedule>>) -> Self {
        Self {
            config,
            schedule,
            budgets: Budgets::default(),
            stats: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            rng: Mutex::new(config.seed.map_or_else(Rng::new, Rng::with_seed)),
        }
    }

    pub(crate) fn bucket(&self, call: &ToolCall) -> Arc<TokenBucket> {
        self.budgets.bucket(call.tool().set(), &self.config)
    }

    /// Returns the pauses of one call. Each call has a seed of its own.
    pub(crate) fn pauses(&self, call: &ToolCall) -> Box<dyn Schedule> {
        match &self.schedule {
            Some(schedule) => schedule.schedule(),
            None => {
                let first = first_backoff(call);
                let rng = self.rng.lock().fork();
                Box::new(self.config.backoff.pauses(first, rng))
            }
        }
    }

    /// Gives the attempt that begins at this moment, at the latest, its share of the time to the
    /// deadline. `refused` attempts are not counted among those allowed.
    pub(crate) fn share_out(&self, call: &mut ToolCall, begin: Instant, refused: u32) {
        let max_attempts = self.config.max_attempts;
        let is_retried = call.plan().is_retryable() && !call.is_background && !call.has_asked();
        let shares = max_attempts > 1 && is_retried;
        let Some(deadline) = call.deadline.filter(|_| shares) else {
            return;
        };
        let limits = &call.plan().limits;
        let (first, retry) = (first_backoff(call), retry_of(call));
        let outlook = Outlook {
            left: deadline.saturating_duration_since(begin.into_std()),
            attempts: max_attempts.saturating_add(refused).saturating_sub(retry),
            pause: match self.schedule {
                // not known before the schedule is asked
                Some(_) => first,
                None => self.config.backoff.longest(first, retry),
            },
            usual: limits.estimated_duration,
            least: first,
        };
        let (bucket, client) = (self.bucket(call), call.client.clone());
        let share = PaidShare::new(outlook, deadline.into(), bucket, client);
        call.attempt_mut().share = share.map(|share| Arc::new(share) as Share);
    }
}

/// Returns the number of the retry that follows the current attempt, counted from 0.
pub(crate) fn retry_of(call: &ToolCall) -> u32 {
    call.attempt().number.saturating_sub(1)
}

/// Returns the first step of the backoff: that of the plan, and at least that of the usual duration
/// of the tool's attempts.
pub(crate) fn first_backoff(call: &ToolCall) -> Duration {
    let planned = call.plan().limits.first_backoff;
    let attempts = call.tool().attempts();
    let usual = attempts.and_then(|attempts| attempts.usual());
    usual.map_or(planned, |usual| planned.max(Limits::backoff_for(usual)))
}

/// Returns the time to the call's deadline, if it has one.
pub(crate) fn time_left(call: &ToolCall) -> Option<Duration> {
    let deadline = call.deadline?;
    Some(deadline.saturating_duration_since(Instant::now().into_std()))
}
