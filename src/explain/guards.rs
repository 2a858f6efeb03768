//! What stands between a call and its failures: repeats, hedges, guards, times and rates.

use std::time::Duration;

use callward_breaker::{BreakerConfig, Risk};
use callward_core::{RetryRule, Verifier};
use callward_loopguard::{LoopGuardConfig, Sessionless};
use callward_retry::hedge::HedgeConfig;

use super::prose::seconds;
use super::{Candidate, Explanation};

impl Explanation {
    /// Returns the tool to check with what a call did whose answer never came. None where the call is
    /// no write, or nobody knows such a tool.
    #[must_use]
    pub fn verifier(&self) -> Option<&Verifier> {
        self.tool().verifier().filter(|_| self.plan().is_write())
    }

    /// Returns when a slow call gets a second attempt beside the first, if it may have one at all: it
    /// only reads, is safe to repeat, and hedging is on.
    #[must_use]
    pub fn hedge(&self) -> Option<&HedgeConfig> {
        let may = !self.plan().is_write() && self.plan().is_retryable();
        self.settings.hedge.as_ref().filter(|_| may)
    }

    /// Returns when a session that repeats the same failing call is answered in the server's place;
    /// `None` if it never is.
    #[must_use]
    pub fn loop_guard(&self) -> Option<&LoopGuardConfig> {
        let guard = self.settings.loop_guard.as_ref();
        guard.filter(|_| self.plan().is_write())
    }

    /// Returns when the breaker of the tool at one server opens, and for how long.
    #[must_use]
    pub fn breaker(&self) -> &BreakerConfig {
        &self.settings.breaker
    }

    /// Says whether the call may be a probe of a breaker like any other; if not, only where nothing
    /// safer can be.
    #[must_use]
    pub fn probes_freely(&self) -> bool {
        Risk::of(self.plan()) == Risk::Safe
    }

    /// Returns how long one attempt may take in all while its server reports progress. Without, it is
    /// the plan's attempt timeout.
    #[must_use]
    pub fn attempt_cap(&self) -> Duration {
        let cap = self.settings.limits.timeout.cap;
        cap.of(self.plan().limits.attempt_timeout)
    }

    /// Returns how many calls a minute the tool gets: what its plan says, where that is held to.
    #[must_use]
    pub fn calls_per_minute(&self) -> Option<f64> {
        let stated = self.plan().limits.calls_per_minute;
        stated.filter(|_| self.settings.limits.rate.tools)
    }

    /// Returns how many calls a minute one principal may make, of all tools together.
    #[must_use]
    pub fn calls_per_minute_of_principal(&self) -> Option<f64> {
        self.settings.limits.rate.per_principal
    }

    /// Returns how long a call waits for its turn at most, where a rate holds it back.
    #[must_use]
    pub fn longest_turn(&self) -> Duration {
        self.settings.limits.rate.max_wait
    }
}

pub(super) fn retry(of: &Explanation) -> String {
    let plan = of.plan();
    let never = match plan.retry {
        RetryRule::Safe if of.max_attempts() > 1 => {
            return format!(
                "If it fails in a way that may pass, it is sent again: at most {} attempts in all, \
                 after a first pause of up to about {} ms.",
                of.max_attempts(),
                plan.limits.first_backoff.as_millis()
            );
        }
        RetryRule::Safe => {
            return "It might be sent again, but only one attempt is configured.".into();
        }
        RetryRule::OnlyUnsent => "It is sent again only if it certainly was not sent",
        _ => "It is never sent again, however it fails",
    };
    format!("{never}; if no answer comes, the caller is told that it may have run.")
}

/// Says how a caller finds out what a call did that was not answered.
pub(super) fn verify(of: &Explanation) -> Option<String> {
    if !of.plan().is_write() {
        return None;
    }
    Some(match of.verifier() {
        Some(verifier) => format!("What it did can then be checked with `{verifier}`."),
        None => "No tool is known to check with what it did then.".into(),
    })
}

/// Says whether a slow call is sent a second time beside the first. Nothing where hedging is off.
pub(super) fn hedge(of: &Explanation) -> Option<String> {
    of.settings.hedge?;
    let Some(hedge) = of.hedge() else {
        return Some("It never runs at two servers at once, however slow it is.".into());
    };
    let takers = of.candidates().iter().filter(|one| one.may_take(of.plan()));
    if takers.count() < 2 {
        return Some("No second attempt runs beside a slow one: only one server offers it.".into());
    }
    Some(format!(
        "If it takes longer than {} of 100 such calls, a second attempt at another server runs \
         beside the first, and the first answer wins.",
        hedge.percentile
    ))
}

/// Says what becomes of a call that a session repeats though it fails. Nothing where that is off.
pub(super) fn loops(of: &Explanation) -> Option<String> {
    let guard = of.loop_guard()?;
    let whose = match guard.without_session {
        Sessionless::ByPrincipal => "one session, or one caller without any,",
        _ => "one session",
    };
    let often = match guard.failures {
        1 => "once".to_owned(),
        times => format!("{times} times in a row"),
    };
    Some(format!(
        "If it fails {often} for {whose} with the same arguments, the loop guard answers the next \
         in the server's place, for {}.",
        seconds(guard.wait)
    ))
}

/// Says when the tool's breaker opens, and whose call it lets through to find out.
pub(super) fn breaker(of: &Explanation) -> String {
    let config = of.breaker();
    let mut causes = Vec::new();
    match config.failures {
        0 => {}
        1 => causes.push("a failure".to_owned()),
        failures => causes.push(format!("{failures} failures in a row")),
    }
    if let Some(share) = config.failure_rate {
        causes.push(format!("{share} % of failures"));
    }
    if let Some(slow) = config.slow_calls {
        let (share, after) = (slow.rate, seconds(slow.after));
        causes.push(format!("{share} % of calls above {after}"));
    }
    let causes = match causes.is_empty() {
        // nothing opens it by itself; an operator still may
        true => return "No breaker opens for it by itself.".into(),
        false => causes.join(" or "),
    };
    let probe = match (of.probes_freely(), config.probes) {
        (true, 1) => "one call is let through as a probe, and this may be it".to_owned(),
        (true, probes) => {
            format!("{probes} calls at once are let through as probes, and this may be one")
        }
        (false, _) => {
            "a call is let through as a probe, and not this where a safe one may come instead"
                .to_owned()
        }
    };
    format!(
        "After {causes} at one server it is kept from there for {}; then {probe}.",
        seconds(config.open_time)
    )
}

/// Says how long it may take.
pub(super) fn time(of: &Explanation) -> String {
    let limits = &of.plan().limits;
    let mut out = format!("One attempt may take {}", seconds(limits.attempt_timeout));
    let cap = of.attempt_cap();
    if cap > limits.attempt_timeout {
        out.push_str(&format!(
            ", and {} while its server reports progress",
            seconds(cap)
        ));
    }
    if let Some(deadline) = of.settings.call_deadline {
        out.push_str(&format!(", the whole call {}", seconds(deadline)));
    }
    out.push('.');
    if let Some(usual) = limits.estimated_duration {
        out.push_str(&format!(" It usually takes {}.", seconds(usual)));
    }
    out
}

/// Says how often it may be called. Nothing where no rate is in force or stated.
pub(super) fn rates(of: &Explanation) -> Option<String> {
    let mut held = Vec::new();
    if let Some(rate) = of.calls_per_minute() {
        held.push(format!("{} of this tool", a_minute(rate)));
    }
    if let Some(rate) = of.calls_per_minute_of_principal() {
        held.push(format!("{} of one caller", a_minute(rate)));
    }
    let servers = of.candidates().iter();
    let of_server = |one: &Candidate| {
        let rate = one.calls_per_minute?;
        Some(format!("{} at `{}`", a_minute(rate), one.server))
    };
    held.extend(servers.filter_map(of_server));
    if held.is_empty() {
        let rate = of.plan().limits.calls_per_minute?;
        return Some(format!(
            "The tool says it bears {}, and it is not held to that.",
            a_minute(rate)
        ));
    }
    let held = held.join(", ");
    Some(match of.longest_turn() {
        Duration::ZERO => format!("At most {held} pass; more are refused."),
        wait => format!(
            "At most {held} pass; more wait for their turn, up to {}, or are refused.",
            seconds(wait)
        ),
    })
}

fn a_minute(rate: f64) -> String {
    match rate {
        1.0 => "1 call a minute".into(),
        rate => format!("{rate} calls a minute"),
    }
}
