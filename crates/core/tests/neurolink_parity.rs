//! NeuroLink's recorded answers, case by case.
//!
//! `data/neurolink-cases.jsonl` holds cases written for this crate, one an edge. A larger recording
//! in the same format is used as well where one lies beside the checkout.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be read is a failed test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tollgate_core::Annotations;
use tollgate_core::infer::neurolink;

/// Functions of NeuroLink that are no matter of annotations.
const ROUTING: [&str; 2] = ["route", "routeByAnnotation"];
/// Numeric fields, where JSON spells what it has no word for as a string.
const NUMBERS: [&str; 3] = ["estimatedDuration", "rateLimitHint", "costHint"];

#[test]
fn our_own_cases_agree() {
    let cases = include_str!("data/neurolink-cases.jsonl");
    let counts = run(cases);
    assert_eq!(counts.values().sum::<usize>(), 42);
    assert_eq!(counts.len(), 9, "a function has no case: {counts:?}");
}

#[test]
fn the_recording_agrees_where_there_is_one() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/parity/neurolink-dev.jsonl");
    match std::fs::read_to_string(&path) {
        Ok(cases) => println!("agreed: {:?}", run(&cases)),
        Err(_) => println!("skipped: no recording at {}", path.display()),
    }
}

/// Checks every case and returns how many there were of each function.
fn run(cases: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let function = case["fn"].as_str().unwrap();
        if ROUTING.contains(&function) {
            continue;
        }
        let ours = plain(answer(function, &case["input"]));
        let theirs = plain(case["output"].clone());
        if ours != theirs {
            wrong.push(format!("{line}\n  ours: {ours}"));
        }
        *counts.entry(function.to_owned()).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    counts
}

fn answer(function: &str, input: &Value) -> Value {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let stated = || hints(input.get("annotations").unwrap_or(&Value::Null));
    match function {
        "inferAnnotations" => result(neurolink::infer_annotations(
            text("name"),
            text("description"),
        )),
        "createAnnotatedTool" => {
            let stated = stated();
            result(neurolink::annotate(
                text("name"),
                text("description"),
                &stated,
            ))
        }
        "mergeAnnotations" => {
            let sets = input.as_array().unwrap().iter();
            let sets: Vec<_> = sets
                .map(|set| (!set.is_null()).then(|| hints(set)))
                .collect();
            object(&neurolink::merge(sets.iter().map(Option::as_ref)))
        }
        "validateAnnotations" => json!(neurolink::validate(input.as_object().unwrap())),
        "getAnnotationSummary" => json!(hints(input).to_string()),
        "getToolSafetyLevel" => json!(stated().safety_level()),
        "isSafeToRetry" => json!(neurolink::is_safe_to_retry(&stated())),
        "requiresConfirmation" => json!(stated().requires_confirmation()),
        "filterToolsByAnnotations" => {
            let tools: Vec<_> = input["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| (tool["name"].clone(), tool.get("annotations").map(hints)))
                .collect();
            let tools = tools.iter().map(|(name, hints)| (name, hints.as_ref()));
            let key = input["key"].as_str().unwrap();
            let wanted = plain(input["value"].clone());
            // Two lists are never the same thing in JavaScript.
            let keep = |hints: &Annotations| {
                !wanted.is_array() && plain(object(hints)).get(key) == Some(&wanted)
            };
            json!(neurolink::filter(tools, keep))
        }
        other => Value::String(format!("no answer to {other}")),
    }
}

fn result(answer: Result<Annotations, neurolink::MissingText>) -> Value {
    match answer {
        Ok(hints) => object(&hints),
        Err(_) => json!({"throws": "TypeError"}),
    }
}

/// Reads a set of hints, numbers in words included.
fn hints(value: &Value) -> Annotations {
    let mut fields = value.as_object().cloned().unwrap_or_default();
    let mut words = Map::new();
    for key in NUMBERS {
        if fields.get(key).is_some_and(Value::is_string) {
            words.extend(fields.remove_entry(key));
        }
    }
    let mut hints: Annotations = serde_json::from_value(Value::Object(fields)).unwrap();
    let number = |key: &str| words.get(key)?.as_str()?.parse::<f64>().ok();
    hints.estimated_duration = hints.estimated_duration.or_else(|| number(NUMBERS[0]));
    hints.rate_limit_hint = hints.rate_limit_hint.or_else(|| number(NUMBERS[1]));
    hints.cost_hint = hints.cost_hint.or_else(|| number(NUMBERS[2]));
    hints
}

/// Writes a set of hints, numbers in words included.
fn object(hints: &Annotations) -> Value {
    let mut value = serde_json::to_value(hints).unwrap();
    for (key, number) in NUMBERS.into_iter().zip([
        hints.estimated_duration,
        hints.rate_limit_hint,
        hints.cost_hint,
    ]) {
        if let Some(number) = number.filter(|number| !number.is_finite()) {
            let word = if number.is_nan() {
                "NaN"
            } else if number > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            };
            value[key] = json!(word);
        }
    }
    value
}

/// One spelling for each number: 1 and 1.0 are the same to JavaScript.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, plain(v))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}
