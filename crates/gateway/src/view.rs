//! Tools and calls as they are shown: one JSON for tables, `--json` and the HTTP interface.

use std::sync::Arc;

use callward::core::resolve::Resolved;
use callward::core::{CacheRule, Category, ConfirmRule, Field, Lifetime, RetryRule};
use callward::registry::Entry;
use callward::{CallPlan, Effect, LearnedLifetime, Stack, Tool, ToolError};
use serde_json::{Map, Value, json};

use crate::config::show_duration;

mod explain;
mod missing;

pub(crate) use explain::explanation;
pub(crate) use missing::{advised, missing};

/// Describes why a call failed.
pub(crate) fn error(error: &ToolError) -> Value {
    let wait = error.retry_after().map(|wait| wait.as_millis());
    json!({
        "kind": error.kind(),
        "delivery": error.delivery(),
        "message": error.to_string(),
        "retry_after_ms": wait.map(|wait| u64::try_from(wait).unwrap_or(u64::MAX)),
        // as clients get them
        "outcome": error.outcome,
        "history": error.history,
    })
}

/// Describes what is learned of a tool; `null` without a repeated call.
pub(crate) fn evidence(learned: Option<&LearnedLifetime>) -> Value {
    let Some(learned) = learned.filter(|learned| learned.repeats > 0) else {
        return Value::Null;
    };
    with_values(json!({
        "served_s": learned.served.as_secs_f64(),
        "repeats": learned.repeats,
        "different": learned.different,
        // why results are not served by it, with the evidence that is missing
        "missing": learned.missing,
    }))
}

/// Describes one of the tool's plans.
pub(crate) fn plan(tool: &Tool, plan: &CallPlan, resolved: &Resolved) -> Value {
    let sources = resolved.provenance.iter();
    let sources = sources.map(|entry| (entry.field.to_string(), json!(entry.source.to_string())));
    let rules = tool.refinements.rules().len();
    with_values(json!({
        "effect": plan.effect.to_string(),
        "safety": plan.effect.safety_level().to_string(),
        "cache": cache_words(plan.cache),
        "retry": retry_word(plan.retry),
        "confirm": plan.confirm == ConfirmRule::Ask,
        // what of each call is written to the audit log: `none`, `partial` or `full`
        "recorded": plan.audit.level.as_str(),
        // what the tool is for
        "category": Category::of(resolved),
        // the effective hints, and the source of each
        "annotations": resolved.annotations,
        "sources": sources.collect::<Map<_, _>>(),
        // why an answer must be fresh: `clock` or `cursor`
        "volatile": resolved.volatile.as_ref().map(|volatile| json!({
            "kind": volatile.volatility.as_str(),
            "reason": volatile.to_string(),
        })),
        // how many rules over the arguments may give a call another plan than the tool's own
        "argument_rules": (rules > 0).then_some(rules),
    }))
}

/// Describes the tool with one of its plans.
pub(crate) fn tool(name: &str, tool: &Tool, plan: &CallPlan, resolved: &Resolved) -> Value {
    let mut view = self::plan(tool, plan, resolved);
    view["name"] = name.into();
    view["set"] = tool.set().as_str().into();
    view["source"] = verdict_source(plan, resolved).into();
    view["reason"] = plan.reason.to_string().into();
    view
}

/// Describes all tools of a stack, in the order clients see them.
pub(crate) fn tools(stack: &Stack) -> Vec<Value> {
    let learned = stack.learned_lifetimes();
    let view = |entry: &Arc<Entry>| {
        let tool = entry.tool();
        let mut view = self::tool(entry.client_name(), tool, tool.plan(), &tool.resolved);
        let seen = learned.get(&(tool.set().clone(), tool.name().clone()));
        if let evidence @ Value::Object(_) = evidence(seen) {
            view["evidence"] = evidence;
        }
        view
    };
    stack.catalogue().entries().iter().map(view).collect()
}

/// Leaves out the members of an object that have no value.
pub(crate) fn with_values(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// Returns how long results are kept, in a few words.
fn cache_words(rule: CacheRule) -> String {
    match rule {
        CacheRule::Store { ttl, lifetime } => {
            let learned = matches!(lifetime, Lifetime::Learned(_));
            format!(
                "{}{}",
                if learned { "learned:" } else { "" },
                show_duration(ttl)
            )
        }
        CacheRule::KeepOwn {
            lifetime: Lifetime::Learned(_),
            ..
        } => "burst (own)".into(),
        CacheRule::KeepOwn { ttl, .. } => format!("{} (own)", show_duration(ttl)),
        CacheRule::Bypass | CacheRule::Invalidate => "never".into(),
        other => other.to_string(),
    }
}

fn retry_word(rule: RetryRule) -> &'static str {
    match rule {
        RetryRule::Safe => "yes",
        RetryRule::OnlyUnsent => "if unsent",
        _ => "never",
    }
}

/// Names the source of the hint that decided the effect.
fn verdict_source(plan: &CallPlan, resolved: &Resolved) -> String {
    let fields: &[Field] = match plan.effect {
        Effect::ReadOnly => &[Field::ReadOnly],
        Effect::Destructive => &[Field::Destructive],
        Effect::Idempotent => &[Field::Idempotent],
        Effect::Mutating => &[Field::ReadOnly, Field::Idempotent, Field::Destructive],
    };
    let decided = fields
        .iter()
        .find_map(|field| resolved.provenance_of(*field));
    decided.map_or_else(|| "default".into(), |entry| entry.source.to_string())
}
