//! An explanation of a call, as data and as prose.

use callward::core::ConfirmRule;
use callward::core::refine::{Applied, RefinedRule};
use callward::core::resolve::Provenance;
use callward::{CallPlan, Candidate, Explanation};
use serde_json::{Value, json};

use super::with_values;

/// Describes an explanation: of a tool as a whole, or of one call of it. The trail has what the
/// layers would decide.
pub(crate) fn explanation(explanation: &Explanation) -> Value {
    let plan = explanation.plan();
    let (tool, resolved) = (&explanation.tool, explanation.resolved());
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
    let mut view = super::tool(&explanation.client_name, tool, plan, resolved);
    view["plan"] = json!(plan);
    view["call"] = explanation
        .call
        .as_ref()
        .map(|_| applied(explanation))
        .into();
    view["rules"] = tool.refinements.rules().iter().map(rule).collect();
    view["servers"] = explanation.candidates.iter().map(server).collect();
    // what the call depends on and invalidates; `null`: all state of the replica set
    view["reads"] = json!(explanation.reads());
    view["writes"] = json!(explanation.writes());
    view["verify_with"] = json!(explanation.verifier().map(ToString::to_string));
    view["hints"] = resolved.provenance.iter().map(hint).collect();
    view["warnings"] = json!(resolved.warnings);
    view["text"] = format!("{explanation}{}", ask_note(plan)).into();
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
