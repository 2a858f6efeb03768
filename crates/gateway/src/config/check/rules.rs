//! Rules over arguments as an operator writes them. They are counted from 1, here as everywhere.

use callward::core::InvalidValue;
use callward::{ArgumentRule, Condition, When};
use serde_json::Value;

use super::{Faults, join};

impl Faults<'_, '_> {
    /// Reads the `rules` of a tool. Each key that cannot be used is reported below the path.
    pub(super) fn rules(&mut self, path: &[&str], written: &toml::Value) -> Vec<ArgumentRule> {
        let expected = "expected a list of tables, each with `when` and hints";
        let written = self.ok(written.as_array().ok_or(expected), path);
        let mut rules = Vec::new();
        for (number, written) in (1_usize..).zip(written.into_iter().flatten()) {
            rules.extend(self.rule(&join(path, &number.to_string()), written));
        }
        rules
    }

    fn rule(&mut self, path: &[&str], written: &toml::Value) -> Option<ArgumentRule> {
        let expected = "expected a table with `when` and hints";
        let mut table = self.ok(written.as_table().cloned().ok_or(expected), path)?;
        let before = self.found.len();
        let when = table.remove("when");
        let when = self.when(path, when.as_ref());
        let hints = self.hints(path, &table.into_iter().collect());
        let rule = ArgumentRule::new(when?, hints);
        (self.found.len() == before).then(|| self.ok(rule, path))?
    }

    /// Reads all conditions. A fault is reported for each that is missing in the result.
    fn when(&mut self, path: &[&str], written: Option<&toml::Value>) -> Option<When> {
        let expected = "expected `when`, the conditions of the rule, such as { action = \"list\" }; \
                        hints for all calls of the tool stand beside its rules";
        let written = self.ok(written.ok_or(expected), path)?;
        let path = join(path, "when");
        let expected =
            "expected a table with at least one condition, such as { action = \"list\" }";
        let conditions = written.as_table().filter(|table| !table.is_empty());
        let mut when: Option<When> = None;
        for (key, value) in self.ok(conditions.ok_or(expected), &path)? {
            let path = join(&path, key);
            let Some(condition) = self.condition(&path, value) else {
                continue;
            };
            let added = match when.clone() {
                None => When::argument(key, condition),
                Some(when) => when.and(key, condition),
            };
            when = self.ok(added, &path).or(when);
        }
        when
    }

    /// Reads a value to be equal to, or a table that names another kind of condition.
    fn condition(&mut self, path: &[&str], written: &toml::Value) -> Option<Condition> {
        let Some(table) = written.as_table() else {
            return self.ok(json(written).map(Condition::equals), path);
        };
        let mut keys = table.iter();
        let (Some((key, value)), None) = (keys.next(), keys.next()) else {
            return self.ok(Err(KINDS), path);
        };
        let unusable = |error: InvalidValue| error.to_string();
        let read = match (key.as_str(), value) {
            ("equals", value) => json(value).map(Condition::equals),
            ("matches", toml::Value::String(text)) => Condition::matches(text).map_err(unusable),
            ("matches", _) => Err("expected a pattern as a string".into()),
            ("one_of", toml::Value::Array(values)) => {
                let values: Result<Vec<Value>, String> = values.iter().map(json).collect();
                values.and_then(|values| Condition::one_of(values).map_err(unusable))
            }
            ("one_of", _) => Err("expected a list of values".into()),
            ("present", toml::Value::Boolean(true)) => Ok(Condition::present()),
            ("present", toml::Value::Boolean(false)) => Ok(Condition::absent()),
            ("present", _) => Err("expected `true` or `false`".into()),
            _ => return self.ok(Err(KINDS), path),
        };
        self.ok(read, &join(path, key))
    }
}

const KINDS: &str = "expected a value, or a table with one of `equals`, `matches`, `one_of`, \
                     `present`; a member of an object is named by its JSON Pointer, such as \
                     \"/target/kind\"";

/// Turns a value into JSON.
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
