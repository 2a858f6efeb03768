//! Hints as an operator writes them: each key known, each value of its type, none in contradiction.

use callward::Annotations;
use callward::core::Field;

use super::super::server::Table;
use super::{Faults, join};
use crate::similar::near;

/// The keys that may stand beside the hints of a tool.
const OTHERS: &str = "rules reads writes verify_with max_concurrent ttl cache";
const NOT_NEGATIVE: &str = "expected a number that is not negative";

impl Faults<'_, '_> {
    /// Reads a table of hints. Each key that cannot be used is reported below the path.
    pub(super) fn hints(&mut self, path: &[&str], written: &Table) -> Annotations {
        let mut known = serde_json::Map::new();
        for (key, value) in written {
            let long = format!("{key}Hint");
            let value = if known_names().any(|name| name == long) && written.contains_key(&long) {
                Err(format!("expected once: `{long}` says the same"))
            } else {
                one(key, value)
            };
            let value = self.ok(value, &join(path, key));
            known.extend(value.map(|value| (key.clone(), value)));
        }
        let hints = serde_json::from_value(known.into());
        let hints: Annotations = self.ok(hints, path).unwrap_or_default();
        let (reads, destroys) = (hints.read_only_hint, hints.destructive_hint);
        let is_fine = |number: Option<f64>| number.is_none_or(|n| n.is_finite() && n >= 0.0);
        let is_blank = |tag: &String| tag.trim().is_empty();
        #[rustfmt::skip]
        let rules = [
            ((reads, destroys) != (Some(true), Some(true)), "destructiveHint",
             "expected `false` beside `readOnlyHint = true`: what only reads destroys nothing"),
            (is_fine(hints.estimated_duration), "estimatedDuration", NOT_NEGATIVE),
            (is_fine(hints.rate_limit_hint), "rateLimitHint", NOT_NEGATIVE),
            (is_fine(hints.cost_hint), "costHint", NOT_NEGATIVE),
            (!hints.tags.iter().flatten().any(is_blank), "tags",
             "expected words, found a blank one"),
        ];
        for (holds, key, message) in rules {
            self.expect(holds, &join(path, key), message);
        }
        hints
    }
}

/// The keys of a hint table. Short forms are understood too, and named by no message.
fn known_names() -> impl Iterator<Item = &'static str> {
    Field::ALL.iter().map(|field| field.as_str())
}

fn one(key: &str, value: &toml::Value) -> Result<serde_json::Value, String> {
    if let toml::Value::Float(number) = value
        && !number.is_finite()
    {
        // JSON cannot express these numbers: they would silently become `null`
        return Err(NOT_NEGATIVE.into());
    }
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    let alone = serde_json::json!({ key: value });
    let hints: Annotations = serde_json::from_value(alone).map_err(|error| {
        let message = error.to_string();
        // the fault names the key
        let rest = message.strip_prefix(key);
        let rest = rest.and_then(|rest| rest.strip_prefix(": "));
        rest.unwrap_or(&message).to_owned()
    })?;
    if hints.vendor.is_empty() {
        Ok(value)
    } else {
        let meant = near(key, known_names().chain(OTHERS.split(' ')));
        let meant = meant.unwrap_or_else(|| {
            let names: Vec<_> = known_names().collect();
            format!("expected one of {}", names.join(", "))
        });
        Err(format!("unknown hint, {meant}"))
    }
}
