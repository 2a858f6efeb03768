//! Our answer to each of NeuroLink's functions.

use std::collections::BTreeSet;

use callward_core::{Annotations, ConfirmRule};
use serde_json::{Value, json};

use super::{Deviation, Fallible, hints, neurolink, route};

/// What we answer.
pub(super) enum Answer {
    /// The same kind of value as NeuroLink's.
    Is(Value),
    /// Another one than NeuroLink's, or one that may be, for reasons that were found to hold; the
    /// same where there is none.
    Otherwise(BTreeSet<Deviation>),
    /// We do not have this function.
    Skipped,
}

/// Answers a recorded call. `theirs` is what NeuroLink answered, to see where a difference is
/// meant.
pub(super) fn answer(function: &str, input: &Value, theirs: &Value) -> Fallible<Answer> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let stated = || hints::read(input.get("annotations").unwrap_or(&Value::Null));
    Ok(Answer::Is(match function {
        "inferAnnotations" => thrown(neurolink::infer(text("name"), text("description")))?,
        "createAnnotatedTool" => {
            let inferred = neurolink::infer(text("name"), text("description"));
            let stated = stated()?;
            thrown(inferred.map(|inferred| inferred.merge(&stated)))?
        }
        "mergeAnnotations" => {
            let sets = input.as_array().ok_or("the input is not a list")?.iter();
            let sets = sets
                .map(|set| (!set.is_null()).then(|| hints::read(set)).transpose())
                .collect::<Fallible<Vec<_>>>()?;
            let merge = |base: Annotations, over: &Annotations| base.merge(over);
            hints::write(&sets.iter().flatten().fold(Annotations::default(), merge))?
        }
        "validateAnnotations" => json!(neurolink::validate(
            input.as_object().ok_or("the input is not an object")?
        )),
        "getAnnotationSummary" => json!(hints::read(input)?.to_string()),
        "getToolSafetyLevel" => json!(neurolink::plan(stated()?).effect.safety_level()),
        "isSafeToRetry" => json!(neurolink::is_safe_to_retry(&stated()?)),
        "requiresConfirmation" => json!(neurolink::plan(stated()?).confirm == ConfirmRule::Ask),
        "filterToolsByAnnotations" => filter(input)?,
        "routeByAnnotation" => return route::candidates(input, theirs),
        "route" => return route::decisions(input, theirs),
        _ => return Ok(Answer::Skipped),
    }))
}

fn thrown(answer: Option<Annotations>) -> Fallible<Value> {
    match answer {
        Some(found) => hints::write(&found),
        None => Ok(json!({"throws": "TypeError"})),
    }
}

fn filter(input: &Value) -> Fallible<Value> {
    let tools = input.get("tools").and_then(Value::as_array);
    let tools = tools
        .ok_or("there is no list of tools")?
        .iter()
        .map(|tool| {
            let stated = tool.get("annotations").map(hints::read).transpose()?;
            Ok((tool.get("name").cloned().unwrap_or_default(), stated))
        })
        .collect::<Fallible<Vec<_>>>()?;
    let key = input.get("key").and_then(Value::as_str).ok_or("no key")?;
    let wanted = hints::plain(input.get("value").cloned().unwrap_or_default());
    // Two lists are never the same thing in JavaScript.
    let keep = |stated: &Annotations| {
        !wanted.is_array()
            && hints::write(stated)
                .is_ok_and(|written| hints::plain(written).get(key) == Some(&wanted))
    };
    let silent = Annotations::default();
    let kept = tools
        .iter()
        .filter(|(_, stated)| keep(stated.as_ref().unwrap_or(&silent)));
    Ok(kept.map(|(name, _)| name.clone()).collect())
}
