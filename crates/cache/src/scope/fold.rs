//! Arguments as parts of scope names.
//!
//! A server may take `7`, `"7"` and `"7 "` for the same order; separate scopes would keep a read
//! that a write has changed. So values are folded before they are compared. Values that fold
//! together without need are only invalidated together.

use serde_json::Value;
use smallvec::SmallVec;

/// The folded values found in one place of the arguments.
pub(super) type Values = SmallVec<[String; 2]>;

/// A call with more scopes than this counts as one with all scopes.
pub(super) const MAX_SCOPES: usize = 16;

/// Returns the values at one place: one for a scalar, several for a list of scalars. `None` where
/// no scope can be named by it: nothing is there, `null`, an object, an empty or a nested list.
pub(super) fn at(place: &Value) -> Option<Values> {
    match place {
        Value::Array(items) if !items.is_empty() && items.len() <= MAX_SCOPES => {
            items.iter().map(scalar).collect()
        }
        scalar_ => scalar(scalar_).map(|value| SmallVec::from_iter([value])),
    }
}

/// Returns every scalar in the arguments. `None` if there is none, or more than [`MAX_SCOPES`].
pub(super) fn all(arguments: &Value) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![arguments];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::Null => {}
            value => found.extend(scalar(value)),
        }
        if found.len() > MAX_SCOPES {
            return None;
        }
    }
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then_some(found)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text_or_number(text)),
        Value::Number(number) => Some(text_or_number(&number.to_string())),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Folds letter case and surrounding space, and all textual forms of one number: through a double,
/// so that large neighbours meet.
fn text_or_number(text: &str) -> String {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => format!("{}", number + 0.0),
        _ => text.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_a_server_may_take_for_equal_fold_together() {
        for (one, other) in [
            (json!(7), json!("7")),
            (json!(7), json!(7.0)),
            (json!(" Ab "), json!("aB")),
            (json!(-0.0), json!(0)),
            (json!("1e2"), json!(100)),
            (json!(true), json!("TRUE")),
        ] {
            assert_eq!(at(&one), at(&other), "{one} {other}");
            assert!(at(&one).is_some(), "{one}");
        }
        assert_ne!(at(&json!("a")), at(&json!("b")));
    }

    #[test]
    fn all_values_are_found_at_any_depth_up_to_a_limit() {
        let found = all(&json!({"a": [1, {"b": "X"}], "c": null, "d": "x"})).unwrap();
        assert_eq!(found, ["1", "x"]);
        assert_eq!(all(&json!({"a": null})), None);
        assert_eq!(all(&json!((0..20).collect::<Vec<_>>())), None);
    }
}
