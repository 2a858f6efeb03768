//! `rules` of a tool: hints for calls with certain arguments.

use std::collections::BTreeMap;

use callward::core::{Field, InvalidValue};
use callward::{Annotations, ArgumentRule, Condition, When};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::similar::near;

/// A rule, read as the file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Value")]
pub(crate) struct Rule(pub(crate) ArgumentRule);

#[derive(Deserialize)]
#[serde(expecting = "a table with `when` and hints")]
struct Written {
    #[serde(default)]
    when: BTreeMap<String, Test>,
    #[serde(flatten)]
    hints: Annotations,
}

impl TryFrom<Written> for Rule {
    type Error = String;

    fn try_from(Written { when, hints }: Written) -> Result<Self, String> {
        if let Some(key) = hints.vendor.keys().next() {
            let meant = near(key, Field::ALL.iter().map(|field| field.as_str()));
            let meant = meant.unwrap_or_else(|| "expected `when` or one of the hints".into());
            return Err(format!("unknown hint `{key}`, {meant}"));
        }
        let unusable = |error: InvalidValue| error.to_string();
        let mut all: Option<When> = None;
        for (key, Test(condition)) in when {
            let added = match all {
                None => When::argument(&key, condition),
                Some(when) => when.and(&key, condition),
            };
            all = Some(added.map_err(unusable)?);
        }
        let when = all.ok_or(
            "expected `when` with at least one condition, such as { action = \"list\" }; hints for \
             all calls of the tool stand beside its rules",
        )?;
        ArgumentRule::new(when, hints).map(Self).map_err(unusable)
    }
}

impl From<Rule> for Value {
    fn from(Rule(rule): Rule) -> Self {
        json!({ "when": rule.when().to_string(), "hints": rule.hints() })
    }
}

/// A value to be equal to, or a table that names another kind of condition.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Test(Condition);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Equals(Value),
    Matches(String),
    OneOf(Vec<Value>),
    Present(bool),
}

impl TryFrom<Value> for Test {
    type Error = String;

    fn try_from(written: Value) -> Result<Self, String> {
        if !written.is_object() {
            return Ok(Self(Condition::equals(written)));
        }
        let kind = serde_json::from_value(written).map_err(|error| {
            format!(
                "expected a value, or a table with one of `equals`, `matches`, `one_of`, \
                 `present`: {error}; a member of an object is named by its JSON Pointer, such as \
                 \"/target/kind\""
            )
        })?;
        let condition = match kind {
            Kind::Equals(value) => Ok(Condition::equals(value)),
            Kind::Matches(pattern) => Condition::matches(&pattern),
            Kind::OneOf(values) => Condition::one_of(values),
            Kind::Present(true) => Ok(Condition::present()),
            Kind::Present(false) => Ok(Condition::absent()),
        };
        condition.map(Self).map_err(|error| error.to_string())
    }
}
