//! Conditions as a config has them: a table from the places of arguments to what they must be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::{Condition, When};
use crate::InvalidValue;

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, Test>::deserialize(from)?;
        let mut all: Option<Self> = None;
        for (key, Test(condition)) in written {
            let added = match all {
                None => Self::argument(&key, condition),
                Some(when) => when.and(&key, condition),
            };
            all = Some(added.map_err(serde::de::Error::custom)?);
        }
        all.ok_or_else(|| {
            serde::de::Error::custom(
                "expected at least one condition, such as { action = \"list\" }",
            )
        })
    }
}

/// As text, for people.
impl Serialize for When {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
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
        condition
            .map(Self)
            .map_err(|error: InvalidValue| error.to_string())
    }
}
