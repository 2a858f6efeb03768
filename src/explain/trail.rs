//! The trail of what would happen to a call.

use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Trail, Verdict};
use callward_core::{CacheRule, RetryRule};

use super::Explanation;
use super::prose::seconds;

/// Says what each layer would decide, in the order of the stack.
pub(super) fn trail(of: &Explanation) -> Trail {
    let mut trail = Trail::expected(of.tool(), of.applied());
    let decisions = cache(of)
        .into_iter()
        .chain(loop_guard(of))
        .chain([retry(of)])
        .chain(hedge(of))
        .chain(limits(of))
        .chain(route(of))
        .chain(breakers(of))
        .chain([timeout(of)]);
    for decision in decisions {
        trail.push(decision);
    }
    trail
}

fn cache(of: &Explanation) -> Option<Decision> {
    if let Some(seen) = &of.foresight {
        let bypass = seen.bypass.map(|reason| reason.as_str());
        return Decision::of_cache(seen.status, bypass, seen.age, seen.scope.as_deref());
    }
    // of a tool as a whole, the rule is all there is
    let cache = |verdict, why: String| Some(Decision::new(Stage::Cache, verdict, why));
    match of.plan().cache {
        _ if !of.caches() => cache(Verdict::Bypass, "disabled".into()),
        CacheRule::Bypass => cache(Verdict::Bypass, "plan".into()),
        rule @ CacheRule::Store { .. } => cache(Verdict::LookUp, rule.to_string()),
        rule => cache(Verdict::Invalidated, rule.to_string()),
    }
}

fn loop_guard(of: &Explanation) -> Option<Decision> {
    let guard = of.loop_guard()?;
    let why = format!(
        "answers for {} in the server's place what failed {} times in a row for one session",
        seconds(guard.window),
        guard.failures
    );
    Some(Decision::new(Stage::LoopGuard, Verdict::Watch, why))
}

fn retry(of: &Explanation) -> Decision {
    let limits = &of.plan().limits;
    let attempts = of.max_attempts();
    let first = limits.first_backoff;
    let (verdict, why) = match of.plan().retry {
        RetryRule::Never => (Verdict::Never, "however it fails".to_owned()),
        _ if attempts < 2 => (Verdict::Never, "one attempt is configured".to_owned()),
        RetryRule::OnlyUnsent => (
            Verdict::OnlyUnsent,
            format!("only what certainly was not sent, at most {attempts} attempts"),
        ),
        _ => (
            Verdict::Safe,
            format!("at most {attempts} attempts, the first pause up to about {first:?}"),
        ),
    };
    Decision::new(Stage::Retry, verdict, why)
}

/// Nothing where hedging is off.
fn hedge(of: &Explanation) -> Option<Decision> {
    of.settings.hedge?;
    let (verdict, why) = match of.hedge() {
        Some(hedge) => (
            Verdict::IfSlow,
            format!("slower than {} of 100 such calls", hedge.percentile),
        ),
        None => (Verdict::Never, "it is no read".to_owned()),
    };
    Some(Decision::new(Stage::Hedge, verdict, why))
}

fn limits(of: &Explanation) -> Vec<Decision> {
    let limit = |rate: f64, whose: &str| {
        let why = format!("{rate} calls a minute {whose}");
        Decision::new(Stage::Limit, Verdict::AtMost, why)
    };
    let tool = of.calls_per_minute();
    let principal = of.calls_per_minute_of_principal();
    let servers = of.candidates().iter().filter_map(|candidate| {
        let rate = candidate.calls_per_minute?;
        Some(limit(rate, "for all calls there together").at(candidate.server.clone()))
    });
    tool.map(|rate| limit(rate, "for its tool"))
        .into_iter()
        .chain(principal.map(|rate| limit(rate, "for its principal")))
        .chain(servers)
        .collect()
}

/// Nothing of a tool whose plan depends on the arguments.
fn route(of: &Explanation) -> Option<Decision> {
    let decision = of.route()?.clone();
    Some(Decision::of_route(&Arc::new(decision)))
}

/// Says whose breakers would refuse the call, and that the chosen server's would not.
fn breakers(of: &Explanation) -> Vec<Decision> {
    let chosen = of.route().and_then(|route| route.chosen.as_ref());
    let breaker = |verdict, why: &'static str| Decision::new(Stage::Breaker, verdict, why);
    of.candidates()
        .iter()
        .filter_map(|candidate| {
            let decision = if !candidate.lets_calls_through {
                breaker(
                    Verdict::Refused,
                    "its breaker, or the one for the tool there, is open",
                )
            } else if chosen == Some(&candidate.server) {
                breaker(Verdict::Pass, "")
            } else {
                return None;
            };
            Some(decision.at(candidate.server.clone()))
        })
        .collect()
}

fn timeout(of: &Explanation) -> Decision {
    let (limit, cap) = (of.plan().limits.attempt_timeout, of.attempt_cap());
    let mut why = seconds(limit);
    if cap > limit {
        why.push_str(&format!(", and {} with progress", seconds(cap)));
    }
    if let Some(deadline) = of.settings.call_deadline.filter(|of| *of > Duration::ZERO) {
        why.push_str(&format!(", the whole call {}", seconds(deadline)));
    }
    Decision::new(Stage::Timeout, Verdict::AtMost, why)
}
