//! Sets of hints as the cases write them: JavaScript's numbers, and words where JSON has none.

use callward_core::Annotations;
use serde_json::{Map, Value, json};

use super::Fallible;

/// Numeric fields, where JSON spells what it has no word for as a string.
const NUMBERS: [&str; 3] = ["estimatedDuration", "rateLimitHint", "costHint"];

/// Reads a set of hints, numbers in words included.
pub(super) fn read(value: &Value) -> Fallible<Annotations> {
    let mut fields = value.as_object().cloned().unwrap_or_default();
    let mut words = Map::new();
    for key in NUMBERS {
        if fields.get(key).is_some_and(Value::is_string) {
            words.extend(fields.remove_entry(key));
        }
    }
    let mut hints: Annotations = serde_json::from_value(Value::Object(fields))?;
    let number = |key: &str| words.get(key)?.as_str()?.parse::<f64>().ok();
    hints.estimated_duration = hints.estimated_duration.or_else(|| number(NUMBERS[0]));
    hints.rate_limit_hint = hints.rate_limit_hint.or_else(|| number(NUMBERS[1]));
    hints.cost_hint = hints.cost_hint.or_else(|| number(NUMBERS[2]));
    Ok(hints)
}

/// Writes a set of hints, numbers in words included.
pub(super) fn write(hints: &Annotations) -> Fallible<Value> {
    let mut value = serde_json::to_value(hints)?;
    for (key, number) in NUMBERS.into_iter().zip([
        hints.estimated_duration,
        hints.rate_limit_hint,
        hints.cost_hint,
    ]) {
        let word = match number {
            Some(number) if number.is_nan() => "NaN",
            Some(f64::INFINITY) => "Infinity",
            Some(f64::NEG_INFINITY) => "-Infinity",
            _ => continue,
        };
        value[key] = json!(word);
    }
    Ok(value)
}

/// One spelling for each number: 1 and 1.0 are the same to JavaScript.
pub(super) fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, plain(v))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}
