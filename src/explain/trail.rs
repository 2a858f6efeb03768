//! The trail of what would happen to a call.

use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Trail, Verdict};
use callward_core::{CacheRule, CacheStatus, RetryRule};
use callward_loopguard::LoopGuardConfig;

use super::{Candidate, Explanation, OPEN};
use crate::learned::{LearnedLifetime, seconds};

/// Returns what each layer would decide, in the order of the stack.
pub(super) fn trail(of: &Explanation) -> Trail {
    let mut trail = Trail::expected(&of.tool, of.applied());
    let decisions = of
        .authorization
        .clone()
        .into_iter()
        .chain(of.guardrails.iter().cloned())
        .chain(principal(of))
        .chain(cache(of))
        .chain(loop_guard(of))
        .chain([retry(of)])
        .chain(hedge(of))
        .chain(limits(of))
        .chain(route(of))
        .chain(breakers(of))
        .chain([timeout(of)]);
    trail.decisions.extend(decisions);
    trail
}

/// The limits of the caller's principal.
fn principal(of: &Explanation) -> Vec<Decision> {
    let limits = of.settings.principal_limits.of(of.plan().effect);
    let decision = |(name, max)| {
        let why = format!("`{name}` of {max} for its principal, and what exceeds it is refused");
        Decision::new(Stage::Limit, Verdict::AtMost, why)
    };
    limits.map(decision).collect()
}

fn cache(of: &Explanation) -> Option<Decision> {
    let rule = of.plan().cache;
    let named = named(of);
    let mut decision = match &of.preview {
        Some(seen) => {
            let bypass = seen.bypass.map(|reason| reason.as_str());
            let scope = named.as_deref().or(seen.scope.as_deref());
            Decision::of_cache(seen.status, bypass, seen.age, scope)?
        }
        // a tool as a whole has a rule, and no choice of a server
        None => {
            let status = match rule {
                _ if !of.settings.cache.enabled => CacheStatus::Bypass,
                CacheRule::Bypass => CacheStatus::Bypass,
                CacheRule::Store { .. } => CacheStatus::Miss,
                _ => CacheStatus::Invalidated,
            };
            let mut decision = Decision::of_cache(status, Some(""), None, named.as_deref())?;
            if status == CacheStatus::Miss {
                decision.verdict = Verdict::LookUp;
            }
            decision
        }
    };
    let volatile = of.resolved().volatile.as_ref();
    let detail = match rule {
        _ if !of.settings.cache.enabled => Some("the cache is off".to_owned()),
        CacheRule::Bypass => volatile.map(ToString::to_string),
        CacheRule::Invalidate => None,
        rule => Some(rule.to_string()),
    };
    let parts = [Some(decision.reason.into_owned()), detail, evidence(of)];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.retain(|part| !part.is_empty());
    decision.reason = parts.join(", ").into();
    Some(decision)
}

/// Returns the state that the operator names: the scopes of a call, or the templates of a tool.
fn named(of: &Explanation) -> Option<String> {
    let scopes = of.reads().or_else(|| of.writes())?;
    let quoted: Vec<_> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
    Some(match quoted.is_empty() {
        true => "nothing".to_owned(),
        false => quoted.join(", "),
    })
}

/// Returns what repeated calls of the tool showed, if its lifetime is learned.
fn evidence(of: &Explanation) -> Option<String> {
    let burst = of.settings.cache.burst;
    LearnedLifetime::new(of.plan(), of.evidence.as_ref(), burst).map(|learned| learned.to_string())
}

fn loop_guard(of: &Explanation) -> Option<Decision> {
    let guard = of.settings.loop_guard.0.as_ref();
    let guard = guard.filter(|_| of.plan().is_write())?;
    let why = format!(
        "after {} failures in a row for one session, it answers in the server's place for {}",
        guard.failures,
        seconds(LoopGuardConfig::WAIT)
    );
    Some(Decision::new(Stage::LoopGuard, Verdict::Watch, why))
}

fn retry(of: &Explanation) -> Decision {
    let limits = &of.plan().limits;
    let attempts = of.settings.retry.max_attempts;
    let first = limits.first_backoff;
    let (verdict, why) = match of.plan().retry {
        RetryRule::Never => (Verdict::Never, "however it fails".to_owned()),
        _ if attempts < 2 => (Verdict::Never, "one attempt is configured".to_owned()),
        RetryRule::OnlyUnsent => {
            let why = format!("only what certainly was not sent, at most {attempts} attempts");
            (Verdict::OnlyUnsent, why)
        }
        _ => {
            let why = format!("at most {attempts} attempts, the first pause up to about {first:?}");
            (Verdict::Safe, why)
        }
    };
    let check = of
        .verifier()
        .map(|verifier| format!(", check its outcome with `{verifier}`"));
    Decision::new(Stage::Retry, verdict, why + &check.unwrap_or_default())
}

/// Nothing where hedging is off.
fn hedge(of: &Explanation) -> Option<Decision> {
    let percentile = of.settings.hedge?.percentile;
    let may = !of.plan().is_write() && of.plan().is_retryable();
    let slow = format!("slower than {percentile} of 100 such calls");
    let (verdict, why) = match may {
        true => (Verdict::IfSlow, slow),
        false => (Verdict::Never, "it is not a read".to_owned()),
    };
    Some(Decision::new(Stage::Hedge, verdict, why))
}

fn limits(of: &Explanation) -> Vec<Decision> {
    let rates = of.settings.limits.rate;
    let limit = |rate: f64, whose: &str| {
        let wait = seconds(rates.max_wait);
        let why = format!("{rate} calls a minute {whose}, a call waits up to {wait} for its turn");
        Decision::new(Stage::Limit, Verdict::AtMost, why)
    };
    let tool = of.plan().limits.calls_per_minute.filter(|_| rates.tools);
    let tool = tool.map(|rate| limit(rate, "for its tool"));
    let servers = of.candidates.iter().filter_map(|candidate| {
        let rate = candidate.calls_per_minute?;
        Some(limit(rate, "for all calls there together").at(candidate.server.clone()))
    });
    tool.into_iter().chain(servers).collect()
}

/// Nothing of a tool whose plan depends on the arguments.
fn route(of: &Explanation) -> Option<Decision> {
    let decision = of.route.clone()?;
    Some(Decision::of_route(&Arc::new(decision)))
}

/// Says whose breakers would refuse the call, and that the chosen server's would not.
fn breakers(of: &Explanation) -> Vec<Decision> {
    let chosen = of.route.as_ref().and_then(|route| route.chosen.as_ref());
    let decision = |candidate: &Candidate| {
        let (verdict, why) = match candidate.is_refused() {
            true => (Verdict::Refused, OPEN.to_owned()),
            false if chosen == Some(&candidate.server) => (Verdict::Pass, opens(of)),
            false => return None,
        };
        Some(Decision::new(Stage::Breaker, verdict, why).at(candidate.server.clone()))
    };
    of.candidates.iter().filter_map(decision).collect()
}

/// Says when the breaker of the tool opens, and for how long.
fn opens(of: &Explanation) -> String {
    let config = &of.settings.breaker;
    let failures = (config.failures > 0).then(|| format!("{} failures in a row", config.failures));
    // to a tenth: 0.29 times 100 is not 29
    let percent = |share: f64| (share * 1000.0).round() / 10.0;
    let rate = config.failure_rate;
    let rate = rate.map(|share| format!("{} % of failures", percent(share)));
    let slow = config.slow_after.map(|after| {
        let share = percent(config.slow_share());
        format!("{share} % of calls above {}", seconds(after))
    });
    let causes: Vec<String> = [failures, rate, slow].into_iter().flatten().collect();
    if causes.is_empty() {
        return "it opens only by hand".to_owned();
    }
    let (causes, time) = (causes.join(" or "), seconds(config.open_time));
    let probe = match of.plan().is_write() && !of.plan().is_retryable() {
        true => "; this call probes it only if no safe call comes",
        false => "",
    };
    format!("opens after {causes}, for {time}{probe}")
}

fn timeout(of: &Explanation) -> Decision {
    let limit = of.plan().limits.attempt_timeout;
    let cap = of.settings.limits.progress_cap.of(limit);
    let mut why = seconds(limit);
    if cap > limit {
        why.push_str(&format!(", and {} with progress", seconds(cap)));
    }
    if let Some(deadline) = of.settings.call_deadline.filter(|of| *of > Duration::ZERO) {
        why.push_str(&format!(", the whole call {}", seconds(deadline)));
    }
    if let Some(usual) = of.plan().limits.estimated_duration {
        why.push_str(&format!(", usually {}", seconds(usual)));
    }
    Decision::new(Stage::Timeout, Verdict::AtMost, why)
}
