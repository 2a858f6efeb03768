//! Rules over arguments as an operator writes them. They are counted from 1, here as everywhere.

use callward::core::InvalidValue;
use callward::{ArgumentRule, Condition, When};
use serde_json::Value;

use super::hints;

/// What is wrong with a key, named by the keys on the way to it.
#[derive(Debug)]
struct Fault {
    path: Vec<String>,
    message: String,
}

impl Fault {
    fn new(path: &[&str], message: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(ToString::to_string).collect(),
            message: message.into(),
        }
    }

    /// Goes one step out.
    fn below(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self
    }
}

/// Reads the `rules` of a tool, and tells `fault` of each key that cannot be used, by its path.
pub(super) fn read(
    written: &toml::Value,
    mut fault: impl FnMut(&[&str], String),
) -> Vec<ArgumentRule> {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    match written.as_array() {
        Some(written) => {
            for (number, written) in (1_usize..).zip(written) {
                match one(written) {
                    Ok(rule) => rules.push(rule),
                    Err(found) => faults.extend(
                        found
                            .into_iter()
                            .map(|fault| fault.below(&number.to_string())),
                    ),
                }
            }
        }
        None => faults.push(Fault::new(
            &[],
            "expected a list of tables, each with `when` and hints",
        )),
    }
    for Fault { path, message } in faults {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        fault(&path, message);
    }
    rules
}

fn one(written: &toml::Value) -> Result<ArgumentRule, Vec<Fault>> {
    let Some(table) = written.as_table() else {
        let fault = Fault::new(&[], "expected a table with `when` and hints");
        return Err(vec![fault]);
    };
    let mut faults = Vec::new();
    let when = when(table.get("when"), &mut faults);
    let said = table
        .iter()
        .filter(|(key, _)| *key != "when")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let hints = hints::read(&said, |key, message| {
        faults.push(Fault::new(&[key], message));
    });
    match when {
        Some(when) if faults.is_empty() => {
            ArgumentRule::new(when, hints).map_err(|error| vec![Fault::new(&[], error.to_string())])
        }
        _ => Err(faults),
    }
}

/// Reads all conditions. There is a fault for each that is missing in the result.
fn when(written: Option<&toml::Value>, faults: &mut Vec<Fault>) -> Option<When> {
    let Some(written) = written else {
        faults.push(Fault::new(
            &[],
            "expected `when`, the conditions of the rule, such as { action = \"list\" }; hints for \
             all calls of the tool stand beside its rules",
        ));
        return None;
    };
    let Some(conditions) = written.as_table().filter(|table| !table.is_empty()) else {
        faults.push(Fault::new(
            &["when"],
            "expected a table with at least one condition, such as { action = \"list\" }",
        ));
        return None;
    };
    let mut when: Option<When> = None;
    for (key, value) in conditions {
        let added = condition(value).and_then(|condition| {
            match when.clone() {
                None => When::argument(key, condition),
                Some(when) => when.and(key, condition),
            }
            .map_err(|error| Fault::new(&[], error.to_string()))
        });
        match added {
            Ok(added) => when = Some(added),
            Err(fault) => faults.push(fault.below(key).below("when")),
        }
    }
    when
}

/// Reads a value to be equal to, or a table that names another kind of condition.
fn condition(written: &toml::Value) -> Result<Condition, Fault> {
    let whole = |message: &str| Fault::new(&[], message);
    let Some(table) = written.as_table() else {
        return json(written)
            .map(Condition::equals)
            .map_err(|message| whole(&message));
    };
    let mut keys = table.iter();
    let (Some((key, value)), None) = (keys.next(), keys.next()) else {
        return Err(whole(KINDS));
    };
    let at = |message: &str| Fault::new(&[key], message);
    let invalid = |message: String| at(&message);
    let unusable = |error: InvalidValue| at(&error.to_string());
    match (key.as_str(), value) {
        ("equals", value) => json(value).map(Condition::equals).map_err(invalid),
        ("matches", toml::Value::String(pattern)) => Condition::matches(pattern).map_err(unusable),
        ("matches", _) => Err(at("expected a pattern as a string")),
        ("one_of", toml::Value::Array(values)) => {
            let values: Result<Vec<Value>, String> = values.iter().map(json).collect();
            Condition::one_of(values.map_err(invalid)?).map_err(unusable)
        }
        ("one_of", _) => Err(at("expected a list of values")),
        ("present", toml::Value::Boolean(true)) => Ok(Condition::present()),
        ("present", toml::Value::Boolean(false)) => Ok(Condition::absent()),
        ("present", _) => Err(at("expected `true` or `false`")),
        _ => Err(whole(KINDS)),
    }
}

const KINDS: &str = "expected a value, or a table with one of `equals`, `matches`, `one_of`, \
                     `present`; a member of an object is named by its JSON Pointer, such as \
                     \"/target/kind\"";

/// Turns a value into the JSON it stands for.
fn json(written: &toml::Value) -> Result<Value, String> {
    Ok(match written {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Float(number) if number.is_finite() => Value::from(*number),
        toml::Value::Float(_) => return Err("expected a number that JSON has".into()),
        toml::Value::Datetime(_) => {
            return Err("expected a value that JSON has: write a date as a string".into());
        }
        toml::Value::Array(values) => values.iter().map(json).collect::<Result<_, _>>()?,
        toml::Value::Table(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| Ok((name.clone(), json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (Vec<String>, Vec<(String, String)>) {
        let mut faults = Vec::new();
        let table: toml::Table = toml::from_str(text).unwrap();
        let rules = read(&table["rules"], |path, message| {
            faults.push((path.join("."), message));
        });
        let rules = rules.iter().map(|rule| rule.when().to_string()).collect();
        (rules, faults)
    }

    #[test]
    fn every_kind_of_condition_is_read() {
        let (rules, faults) = read_all(
            r#"
            [[rules]]
            when = { action = "list" }
            readOnlyHint = true
            [[rules]]
            when = { "/target/kind" = "draft", action = { matches = "close|hide" } }
            destructiveHint = false
            [[rules]]
            readOnlyHint = true
            [rules.when]
            n = 1
            list = [1, "a"]
            object = { equals = { a = [true] } }
            choice = { one_of = [1.5, "x"] }
            force = { present = false }
            given = { present = true }
            "#,
        );
        assert_eq!(faults, []);
        assert_eq!(
            rules,
            [
                r#"action = "list""#,
                r#"/target/kind = "draft" and action wholly matches "close|hide""#,
                r#"choice is 1.5 or "x" and force is absent and given is present and list = [1,"a"] and n = 1 and object = {"a":[true]}"#,
            ]
        );
    }

    #[test]
    fn each_fault_names_its_key() {
        for (rule, key, expected) in [
            ("readOnlyHint = true", "1", "`when`"),
            ("when = {}\nreadOnlyHint = true", "1.when", "at least one"),
            ("when = \"x\"\nreadOnlyHint = true", "1.when", "a table"),
            ("when = { a = 1 }", "1", "at least one hint"),
            ("when = { a = 1 }\nreadOnly = 1", "1.readOnly", "boolean"),
            ("when = { a = 1 }\nreads = true", "1.reads", "unknown hint"),
            (
                "when = { a = 1 }\nreadOnlyHint = true\ndestructiveHint = true",
                "1.destructiveHint",
                "`false` beside",
            ),
            (
                "when = { a = { matches = \"(\" } }\nreadOnly = true",
                "1.when.a.matches",
                "unclosed",
            ),
            (
                "when = { a = { matches = 1 } }\nreadOnly = true",
                "1.when.a.matches",
                "as a string",
            ),
            (
                "when = { a = { one_of = [] } }\nreadOnly = true",
                "1.when.a.one_of",
                "at least one value",
            ),
            (
                "when = { a = { one_of = \"x\" } }\nreadOnly = true",
                "1.when.a.one_of",
                "a list",
            ),
            (
                "when = { a = { present = 1 } }\nreadOnly = true",
                "1.when.a.present",
                "`true` or `false`",
            ),
            (
                "when = { a = { kind = \"x\" } }\nreadOnly = true",
                "1.when.a",
                "JSON Pointer",
            ),
            (
                "when = { a = { equals = 1, present = true } }\nreadOnly = true",
                "1.when.a",
                "one of",
            ),
            (
                "when = { a = nan }\nreadOnly = true",
                "1.when.a",
                "a number",
            ),
            (
                "when = { a = [1979-05-27] }\nreadOnly = true",
                "1.when.a",
                "as a string",
            ),
            ("when = { \"\" = 1 }\nreadOnly = true", "1.when.", "empty"),
            (
                "when = { \"/a~2\" = 1 }\nreadOnly = true",
                "1.when./a~2",
                "JSON Pointer",
            ),
        ] {
            let (rules, faults) = read_all(&format!("[[rules]]\n{rule}"));
            assert_eq!(rules, [""; 0], "{rule}");
            let [(found, message)] = &faults[..] else {
                panic!("one fault expected in {rule:?}: {faults:?}");
            };
            assert_eq!(found, key, "{rule}: {message}");
            assert!(message.contains(expected), "{rule}: {message}");
        }
    }

    #[test]
    fn what_is_no_list_of_tables_is_refused() {
        for (text, key) in [("rules = 1", ""), ("rules = [1]", "1")] {
            let (_, faults) = read_all(text);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert_eq!(faults[0].0, key);
        }
    }
}
