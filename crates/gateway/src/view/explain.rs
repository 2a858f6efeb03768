//! An explanation of a call, as data and as prose.

use callward::core::refine::{Applied, RefinedRule};
use callward::core::resolve::Provenance;
use callward::core::{CacheRule, ConfirmRule};
use callward::{CallPlan, Candidate, Explanation};
use serde_json::{Value, json};

use super::{cache_words, millis, retry_word, strength_word};

/// Describes an explanation: of a tool as a whole, or of one call of it.
pub(crate) fn explanation(explanation: &Explanation) -> Value {
    let plan = explanation.plan();
    let (tool, resolved) = (explanation.tool(), explanation.resolved());
    let values = json!(resolved.annotations);
    let hint = |entry: &Provenance| {
        json!({
            "hint": entry.field.as_str(),
            "value": values.get(entry.field.as_str()),
            "source": entry.source.to_string(),
            "reason": entry.reason.to_string(),
            "strength": entry.strength.map(strength_word),
        })
    };
    let rules = tool.refinements.rules().iter().map(rule);
    let hints = resolved.provenance.iter().map(hint);
    let max_attempts = explanation.max_attempts();
    let max_attempts = if plan.is_retryable() { max_attempts } else { 1 };
    let mut view = super::tool(explanation.client_name(), tool, plan, resolved);
    let details = json!({
        "call": explanation.call().map(|_| applied(explanation)),
        "rules": rules.collect::<Vec<_>>(),
        "route": route(explanation),
        "keep": keep(explanation),
        "attempts": {
            "max": max_attempts,
            "first_backoff_ms": millis(plan.limits.first_backoff),
            "verify_with": explanation.verifier().map(ToString::to_string),
            "hedge_percentile": explanation.hedge().map(|hedge| hedge.percentile),
        },
        "limits": {
            "attempt_timeout_ms": millis(plan.limits.attempt_timeout),
            "attempt_cap_ms": millis(explanation.attempt_cap()),
            "estimated_duration_ms": plan.limits.estimated_duration.map(millis),
            "calls_per_minute": plan.limits.calls_per_minute,
            "is_held": explanation.calls_per_minute().is_some(),
            "calls_per_minute_of_principal": explanation.calls_per_minute_of_principal(),
            "restricted": plan.limits.restricted,
        },
        "guards": guards(explanation),
        "hints": hints.collect::<Vec<_>>(),
        "warnings": resolved.warnings,
        "text": format!("{explanation}{}", ask_note(plan)),
    });
    if let Value::Object(details) = details {
        for (key, value) in details {
            view[key] = without_nulls(value);
        }
    }
    view["trail"] = json!(explanation.trail());
    view
}

/// Leaves out the members of objects that have no value.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Describes which of a tool's plans a call gets.
fn applied(explanation: &Explanation) -> Value {
    match explanation.applied() {
        Applied::Tool => json!({ "plan": "tool" }),
        // counted from 1
        Applied::Rule(index) => json!({ "plan": "rule", "rule": index + 1 }),
        Applied::Strictest(doubt) => {
            let doubt = explanation.tool().refinements.describe(doubt);
            json!({ "plan": "strictest", "doubt": doubt })
        }
        _ => json!({ "plan": "other" }),
    }
}

fn rule(rule: &RefinedRule) -> Value {
    let plan = &rule.plan;
    json!({
        "when": rule.rule.when().to_string(),
        "hints": rule.rule.hints(),
        "effect": plan.effect.to_string(),
        "cache": cache_words(plan.cache),
        "retry": retry_word(plan.retry),
        "confirm": plan.confirm == ConfirmRule::Ask,
    })
}

/// Describes which servers may get the call; which of them would get it now is in the trail.
fn route(explanation: &Explanation) -> Value {
    let plan = explanation.plan();
    let server = |candidate: &Candidate| {
        json!({
            "server": candidate.server.as_str(),
            "weight": candidate.weight,
            "categories": candidate.categories,
            "calls_per_minute": candidate.calls_per_minute,
            "may_take": candidate.may_take(plan),
            "preferred": candidate.is_preferred(plan),
            "trouble": candidate.trouble(),
            "unfit": candidate.why_not.map(|unfit| unfit.as_str()),
        })
    };
    let servers = explanation.candidates().iter().map(server);
    json!({
        "min_weight": plan.route.min_weight,
        "prefer": plan.route.prefer.as_slice(),
        "tags": *plan.route.tags,
        "cost": plan.route.cost,
        "rule": plan.route.to_string(),
        "strategy": explanation.strategy().strategy().name(),
        "servers": servers.collect::<Vec<_>>(),
    })
}

fn guards(explanation: &Explanation) -> Value {
    let breaker = explanation.breaker();
    let slow = breaker.slow_calls;
    let loop_guard = explanation
        .loop_guard()
        .map(|guard| json!({ "failures": guard.failures, "window_ms": millis(guard.window) }));
    json!({
        "loop_guard": loop_guard,
        "breaker": {
            "failures": breaker.failures,
            "failure_rate": breaker.failure_rate,
            "slow_rate": slow.map(|slow| slow.rate),
            "slow_after_ms": slow.map(|slow| millis(slow.after)),
            "open_ms": millis(breaker.open_time),
            "probes": breaker.probes,
            // `false`: only if no call that is safe can be a probe
            "probes_freely": explanation.probes_freely(),
        },
    })
}

/// Describes how results are kept, and what the call invalidates.
fn keep(explanation: &Explanation) -> Value {
    let enabled = explanation.caches();
    let set = explanation.tool().set();
    let writes = explanation.writes();
    let (ttl, drops) = match explanation.plan().cache {
        CacheRule::Store { ttl, .. } => (Some(ttl), false),
        CacheRule::KeepOwn { ttl, .. } => (Some(ttl), true),
        CacheRule::Bypass => (None, false),
        _ => (None, true),
    };
    json!({
        "enabled": enabled,
        "ttl_ms": ttl.filter(|_| enabled).map(millis),
        "invalidates": (enabled && drops && writes.is_none()).then(|| set.as_str()),
        // `null`: all state of the replica set
        "reads": explanation.reads(),
        "writes": writes,
    })
}

/// What a plan that asks for confirmation means today.
fn ask_note(plan: &CallPlan) -> &'static str {
    if plan.confirm == ConfirmRule::Ask {
        "\nThe plan asks for confirmation. This runtime has no approval layer yet: until it has one, \
         the client is left to ask a person before it calls. The plan is in the `_meta` of the list \
         of tools, for clients that read it.\n"
    } else {
        ""
    }
}
