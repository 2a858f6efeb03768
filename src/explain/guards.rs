//! The settings that guard a call: verifier, hedge, loop guard, breaker, times and rates.

use std::time::Duration;

use callward_breaker::{BreakerConfig, Risk};
use callward_loopguard::LoopGuardConfig;
use callward_retry::hedge::HedgeConfig;

use super::Explanation;

impl Explanation {
    /// Returns the tool that shows what an unanswered call did. `None` if the call is not a write,
    /// or the tool is unknown.
    #[must_use]
    pub fn verifier(&self) -> Option<&str> {
        self.tool
            .verifier
            .as_deref()
            .filter(|_| self.plan().is_write())
    }

    /// Returns when a slow call gets a second attempt beside the first. `None` unless the call is a
    /// read that is safe to retry and hedging is on.
    #[must_use]
    pub fn hedge(&self) -> Option<&HedgeConfig> {
        let may = !self.plan().is_write() && self.plan().is_retryable();
        self.settings.hedge.as_ref().filter(|_| may)
    }

    /// Returns when the loop guard answers a session that repeats the same failing call; `None` if
    /// it never does.
    #[must_use]
    pub fn loop_guard(&self) -> Option<&LoopGuardConfig> {
        let guard = self.settings.loop_guard.0.as_ref();
        guard.filter(|_| self.plan().is_write())
    }

    /// Returns when the breaker of the tool at one server opens, and for how long.
    pub fn breaker(&self) -> &BreakerConfig {
        &self.settings.breaker
    }

    /// Returns `true` if the call may be the probe of a half-open breaker, whatever other calls
    /// there are.
    #[must_use]
    pub fn probes_freely(&self) -> bool {
        Risk::of(self.plan()) == Risk::Safe
    }

    /// Returns how long one attempt may take while its server reports progress. Without progress it
    /// is the plan's attempt timeout.
    #[must_use]
    pub fn attempt_cap(&self) -> Duration {
        let cap = self.settings.limits.progress_cap;
        cap.of(self.plan().limits.attempt_timeout)
    }

    /// Returns how many calls a minute the tool gets: the rate of its plan, if it is enforced.
    #[must_use]
    pub fn calls_per_minute(&self) -> Option<f64> {
        let stated = self.plan().limits.calls_per_minute;
        stated.filter(|_| self.settings.limits.rate.tools)
    }

    /// Returns how many calls a minute one principal may make, to all tools together.
    #[must_use]
    pub fn calls_per_minute_of_principal(&self) -> Option<f64> {
        self.settings.limits.rate.per_principal
    }
}
