//! `rules` of a tool: hints for calls with certain arguments.

use callward::core::Field;
use callward::{Annotations, ArgumentRule, When};
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
    when: Option<When>,
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
        let when = when.ok_or(
            "expected `when` with at least one condition, such as { action = \"list\" }; hints for \
             all calls of the tool stand beside its rules",
        )?;
        let rule = ArgumentRule::new(when, hints);
        rule.map(Self).map_err(|error| error.to_string())
    }
}

impl From<Rule> for Value {
    fn from(Rule(rule): Rule) -> Self {
        json!({ "when": rule.when().to_string(), "hints": rule.hints() })
    }
}
