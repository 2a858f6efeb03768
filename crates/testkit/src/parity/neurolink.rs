//! The functions of NeuroLink that differ from those of core.

use callward_core::{Annotations, CallPlan, Profile, Resolved, RuleSet, Source, Subject};
use serde_json::{Map, Value};

/// Does what `inferAnnotations` does; `None` where it throws a `TypeError`. An empty text is not a
/// missing one.
pub(super) fn infer(name: Option<&str>, description: Option<&str>) -> Option<Annotations> {
    let subject = Subject {
        description: Some(description?),
        ..Subject::new(name?)
    };
    Some(RuleSet::Neurolink.infer(&subject).annotations)
}

/// Does what `validateAnnotations` does, on the object as it was written: a `null` number is
/// wrong, an unknown level is not, and any number of bad tags is one error.
pub(super) fn validate(hints: &Map<String, Value>) -> Vec<String> {
    let mut errors = Vec::new();
    let is_true = |key: &str| hints.get(key).is_some_and(is_truthy);
    if is_true("readOnlyHint") && is_true("destructiveHint") {
        let error = "Tool cannot be both readOnly and destructive - these are conflicting hints";
        errors.push(error.to_owned());
    }
    for key in ["rateLimitHint", "estimatedDuration", "costHint"] {
        let valid = |value: &Value| value.as_f64().is_some_and(|n| n.is_finite() && n >= 0.0);
        if hints.get(key).is_some_and(|value| !valid(value)) {
            errors.push(format!("{key} must be a non-negative number"));
        }
    }
    let is_bad = |tag: &Value| tag.as_str().is_none_or(str::is_empty);
    let tags = hints.get("tags").and_then(Value::as_array);
    if tags.is_some_and(|tags| tags.iter().any(is_bad)) {
        errors.push("All tags must be non-empty strings".to_owned());
    }
    errors
}

/// The plan of a tool with these hints.
pub(super) fn plan(hints: Annotations) -> CallPlan {
    let resolved = Resolved::from_single(hints, Source::Declared);
    CallPlan::derive(&resolved, &Profile::neurolink())
}

/// Does what `isSafeToRetry` does, which does not look at `destructiveHint`.
pub(super) fn is_safe_to_retry(hints: &Annotations) -> bool {
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

/// What JavaScript takes for true. Hints are booleans, but nothing made sure of it.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
