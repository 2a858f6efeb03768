//! Tools and calls as they are shown: one JSON for tables, `--json` and the HTTP interface.

use std::sync::Arc;

use callward::approval::ApprovalLayer;
use callward::core::refine::{Applied, RefinedRule};
use callward::core::resolve::{Provenance, Resolved};
use callward::core::{Ask, CacheRule, Category, ConfirmRule, Field, Lifetime, RetryRule};
use callward::registry::Entry;
use callward::{
    CallPlan, Candidate, Delivery, Effect, Explanation, LearnedLifetime, Stack, Tool, ToolError,
};
use serde_json::{Map, Value, json};

use crate::approvals;
use crate::config::show_duration;
use crate::table::split;

/// Describes why a request is refused: where nothing was sent, the message says all of it.
pub(crate) fn refusal(error: &ToolError) -> Value {
    let mut view = self::error(error);
    if error.delivery == Delivery::NotSent && error.server.is_none() {
        view["message"] = (*error.message).into();
    }
    view
}

/// Describes why a call failed.
pub(crate) fn error(error: &ToolError) -> Value {
    let wait = error.retry_after.map(|wait| wait.as_millis());
    json!({
        "kind": error.kind,
        "delivery": error.delivery,
        "message": error.to_string(),
        // as clients get them
        "retryAfterMs": wait.map(|wait| u64::try_from(wait).unwrap_or(u64::MAX)),
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

/// Describes these tools of a stack.
pub(crate) fn tools(stack: &Stack, tools: &[Arc<Entry>]) -> Vec<Value> {
    let learned = stack.learned_lifetimes();
    let view = |entry: &Arc<Entry>| {
        let tool = entry.tool();
        let mut view = self::tool(entry.client_name(), tool, tool.plan(), &tool.resolved);
        // whether a rule asks about some call, whatever its plan
        view["rule_may_ask"] = stack.policy().is_some_and(|it| it.may_ask(tool)).into();
        let seen = learned.get(&(tool.set().clone(), tool.name().clone()));
        if let evidence @ Value::Object(_) = evidence(seen) {
            view["evidence"] = evidence;
        }
        view
    };
    tools.iter().map(view).collect()
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

/// Describes an explanation: of a tool as a whole, or of one call of it. The trail has what the
/// layers would decide. `ask` is how a rule asks about the call, if one does.
pub(crate) fn explanation(
    explanation: &Explanation,
    layer: &ApprovalLayer,
    ask: Option<&Ask>,
) -> Value {
    let plan = explanation.plan();
    let (called, resolved) = (&explanation.tool, explanation.resolved());
    let values = json!(resolved.annotations);
    let hint = |entry: &Provenance| {
        with_values(json!({
            "hint": entry.field.as_str(),
            "value": values.get(entry.field.as_str()),
            "source": entry.source.to_string(),
            "reason": entry.reason.to_string(),
            "strength": entry.strength,
        }))
    };
    let server = |candidate: &Candidate| {
        with_values(json!({
            "server": candidate.server,
            "weight": candidate.weight,
            "categories": candidate.categories,
            "may_take": candidate.may_take(plan),
            "preferred": candidate.is_preferred(plan),
            "trouble": candidate.trouble(),
        }))
    };
    let mut view = tool(&explanation.client_name, called, plan, resolved);
    view["plan"] = json!(plan);
    view["call"] = explanation
        .call
        .as_ref()
        .map(|_| applied(explanation))
        .into();
    view["rules"] = called.refinements.rules().iter().map(rule).collect();
    view["servers"] = explanation.candidates.iter().map(server).collect();
    // what the call depends on and invalidates; `null`: all state of the replica set
    view["reads"] = json!(explanation.reads());
    view["writes"] = json!(explanation.writes());
    view["verify_with"] = json!(explanation.verifier().map(ToString::to_string));
    view["hints"] = resolved.provenance.iter().map(hint).collect();
    view["warnings"] = json!(resolved.warnings);
    let by = |ask: &Ask| ask.by.unwrap_or_else(|| layer.approver());
    let ask_of = |ask: &Ask| json!({ "rule": ask.rule, "by": by(ask), "approvers": ask.roles });
    view["ask"] = ask.map(ask_of).into();
    view["text"] = format!("{explanation}{}", ask_note(plan, layer, ask)).into();
    view["trail"] = json!(explanation.trail());
    view
}

/// Describes which of a tool's plans a call gets.
fn applied(explanation: &Explanation) -> Value {
    match explanation.applied() {
        Applied::Tool => json!({ "plan": "tool" }),
        // counted from 1
        Applied::Rule(index) => json!({ "plan": "rule", "rule": index + 1 }),
        Applied::Strictest(doubt) => {
            let doubt = explanation.tool.refinements.describe(doubt);
            json!({ "plan": "strictest", "doubt": doubt })
        }
        _ => json!({ "plan": "other" }),
    }
}

fn rule(rule: &RefinedRule) -> Value {
    let (when, hints) = (rule.rule.when().to_string(), rule.rule.hints());
    json!({ "when": when, "hints": hints, "plan": rule.plan })
}

/// What a rule that asks about the call, or a plan that asks for confirmation, means here.
fn ask_note(plan: &CallPlan, layer: &ApprovalLayer, ask: Option<&Ask>) -> String {
    match (ask, plan.confirm) {
        (Some(ask), _) => {
            let who = approvals::of_rule(ask, layer);
            format!("\nRule `{}` asks about the call: {who}\n", ask.rule)
        }
        (None, ConfirmRule::Ask) => {
            let who = approvals::described(layer);
            format!("\nThe plan asks for confirmation: {who}\n")
        }
        _ => String::new(),
    }
}

/// Describes all that is missing: servers that are down, and then tools that were refused,
/// are not there or are held, each in the order of the config.
pub(crate) fn missing(stack: &Stack) -> Vec<Value> {
    let servers = stack.servers();
    let down = servers.iter().filter(|server| !server.up).map(|server| {
        let reason = server.last_error.as_deref();
        let reason = advised(reason.unwrap_or("it does not answer"));
        json!({ "server": server.id, "reason": reason })
    });
    let catalogue = stack.catalogue();
    let refused = catalogue.refused().iter().map(|refusal| {
        json!({ "server": refusal.server, "tool": refusal.tool, "reason": refusal.reason })
    });
    let held = catalogue.held().iter().map(|held| {
        let reason = format!("held for review: {}; see `callward review`", held.reason);
        json!({ "server": held.server, "tool": held.tool, "reason": reason })
    });
    down.chain(refused).chain(held).collect()
}

/// What to do about the status that a server answers with.
const ADVICE: [&str; 5] = [
    "HTTP 401 | it asks for authorization: give it `headers = { authorization = \"Bearer ...\" }` in \
     a config file",
    "HTTP 403 | it refuses these credentials or this host",
    "HTTP 404 | check the path of its URL, often /mcp",
    "HTTP 405 | check the path of its URL: often /mcp, or /sse for the transport of 2024-11-05",
    "HTTP 501 | check its URL: endpoints are often at /mcp",
];

/// Adds what to do about the reason that a server is down, if that is known.
pub(crate) fn advised(reason: &str) -> String {
    let mut advice = ADVICE.into_iter().map(split);
    match advice.find(|[status, _]| reason.contains(status)) {
        Some([_, advice]) => format!("{reason}; {advice}"),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_gets_advice() {
        for (status, advice) in [
            ("401 Unauthorized", "authorization"),
            ("405 Method", "/sse"),
        ] {
            let reason = advised(&format!("the server answered HTTP {status}"));
            assert!(reason.contains(advice), "{reason}");
        }
        assert_eq!(advised("no connection"), "no connection");
    }
}
