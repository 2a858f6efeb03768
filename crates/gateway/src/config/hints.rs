//! Hints as an operator writes them: each key known, each value of its type, none in contradiction.

use std::collections::BTreeMap;

use callward::Annotations;

use crate::similar::near;

/// The keys of a hint table. Short forms are understood too, and named by no message.
const KNOWN: [&str; 13] = [
    "auditRequired",
    "complexity",
    "costHint",
    "destructiveHint",
    "estimatedDuration",
    "idempotentHint",
    "openWorldHint",
    "rateLimitHint",
    "readOnlyHint",
    "requiresConfirmation",
    "securityLevel",
    "tags",
    "title",
];

/// Reads a table of hints, and tells `fault` of each key that cannot be used.
pub(super) fn read(
    written: &BTreeMap<String, toml::Value>,
    mut fault: impl FnMut(&str, String),
) -> Annotations {
    let mut known = serde_json::Map::new();
    for (key, value) in written {
        let long = format!("{key}Hint");
        if KNOWN.contains(&long.as_str()) && written.contains_key(&long) {
            fault(key, format!("expected once: `{long}` says the same"));
            continue;
        }
        match one(key, value) {
            Ok(value) => {
                known.insert(key.clone(), value);
            }
            Err(message) => fault(key, message),
        }
    }
    let hints: Annotations = match serde_json::from_value(known.into()) {
        Ok(hints) => hints,
        Err(error) => {
            fault("", error.to_string());
            Annotations::default()
        }
    };
    if hints.read_only_hint == Some(true) && hints.destructive_hint == Some(true) {
        fault(
            "destructiveHint",
            "expected `false` beside `readOnlyHint = true`: what only reads destroys nothing"
                .into(),
        );
    }
    for (key, number) in [
        ("estimatedDuration", hints.estimated_duration),
        ("rateLimitHint", hints.rate_limit_hint),
        ("costHint", hints.cost_hint),
    ] {
        if number.is_some_and(|number| !number.is_finite() || number < 0.0) {
            fault(key, "expected a number that is not negative".into());
        }
    }
    if hints.tags.iter().flatten().any(|tag| tag.trim().is_empty()) {
        fault("tags", "expected words, found a blank one".into());
    }
    hints
}

fn one(key: &str, value: &toml::Value) -> Result<serde_json::Value, String> {
    if let toml::Value::Float(number) = value
        && !number.is_finite()
    {
        // JSON has no such numbers: they would silently become `null`
        return Err("expected a number that is not negative".into());
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
        let others = [
            "rules",
            "reads",
            "writes",
            "verify_with",
            "max_concurrent",
            "ttl",
            "cache",
        ];
        let meant = near(key, KNOWN.into_iter().chain(others));
        let meant = meant.unwrap_or_else(|| format!("expected one of {}", KNOWN.join(", ")));
        Err(format!("unknown hint, {meant}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (Annotations, Vec<(String, String)>) {
        let mut faults = Vec::new();
        let hints = read(&toml::from_str(text).unwrap(), |key, message| {
            faults.push((key.to_owned(), message));
        });
        (hints, faults)
    }

    #[test]
    fn every_known_hint_is_read() {
        let (hints, faults) = read_all(
            "readOnly = false\ndestructiveHint = false\ntags = [\"a\"]\ncostHint = 3\ncomplexity = \"simple\"",
        );
        assert_eq!(faults, []);
        assert_eq!(hints.read_only_hint, Some(false));
        assert_eq!(hints.cost_hint, Some(3.0));
    }

    #[test]
    fn a_hint_in_both_its_forms_is_told_at_the_short_one() {
        let (_, faults) = read_all("openWorld = true\nopenWorldHint = true");
        let [(key, message)] = &faults[..] else {
            panic!("one fault expected: {faults:?}");
        };
        assert_eq!(key, "openWorld");
        assert!(message.contains("`openWorldHint`"), "{message}");
    }

    #[test]
    fn each_fault_names_its_key() {
        let (_, faults) = read_all(
            "readOnlyHint = true\ndestructiveHint = true\nreadOnlyHnt = 1\ncostHint = -1\ntags = [\" \"]\n\
             complexity = \"huge\"\nrateLimitHint = nan",
        );
        let mut keys: Vec<_> = faults.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(
            keys,
            [
                "complexity",
                "costHint",
                "destructiveHint",
                "rateLimitHint",
                "readOnlyHnt",
                "tags"
            ]
        );
        let unknown = faults.iter().find(|(key, _)| key == "readOnlyHnt").unwrap();
        assert!(unknown.1.contains("readOnlyHint"), "{}", unknown.1);
    }
}
