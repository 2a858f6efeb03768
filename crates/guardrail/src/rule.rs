//! One rule: what it concerns, and what holds there.

use std::fmt;
use std::num::NonZeroU32;

use callward_core::human::size;
use callward_core::refine::Applied;
use callward_core::{AnyOf, Effect, InvalidConfig, ToolCall, ToolGlob, When, words};
use serde::{Deserialize, Serialize};
use serde_json::Value;

words! {
    /// What happens to credentials.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Handling {
        /// The call is refused, or its result withheld.
        Refuse = "refuse",
        /// `[redacted]` stands in their place.
        Redact = "redact",
    }
}

/// What holds for arguments, and for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a call has these two")]
pub struct Sides<T> {
    /// For arguments.
    pub arguments: Option<T>,
    /// For results.
    pub results: Option<T>,
}

impl<T> Default for Sides<T> {
    fn default() -> Self {
        Self {
            arguments: None,
            results: None,
        }
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a number")]
pub struct Size(#[serde(with = "size")] pub u64);

/// How many calls run at most. What was certainly not sent does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config, built by its fields")]
pub struct MaxCalls {
    /// Of one session, within a day. Calls without a session are those of one session of their
    /// principal.
    pub session: Option<NonZeroU32>,
    /// Of one principal, within an hour.
    pub hour: Option<NonZeroU32>,
}

/// One rule: it concerns a call if its tool and its effect fit. Each of its checks applies then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// The tools, by replica set and by the server's own name. Default: all.
    #[serde(default)]
    pub tool: AnyOf<ToolGlob>,
    /// The effects. Default: all.
    #[serde(default)]
    pub effect: AnyOf<Effect>,
    /// Refuses calls whose arguments meet these conditions, or may meet them.
    pub deny: Option<When>,
    /// Refuses calls whose arguments do not certainly meet these conditions.
    pub allow: Option<When>,
    /// The argument that, if it is `true`, makes a call a dry run. Any other call is refused unless
    /// a dry run of its principal with else the same arguments succeeded within ten minutes. Calls
    /// of a tool whose schema lists its arguments, without this one, pass.
    pub dry_run_argument: Option<String>,
    /// What happens to texts and numbers with the
    /// [shape of a credential](callward_core::redact::credentials).
    #[serde(default)]
    pub credentials: Sides<Handling>,
    /// How large arguments and results may be.
    #[serde(default)]
    pub max_bytes: Sides<Size>,
    /// How many calls run at most.
    #[serde(default)]
    pub max_calls: MaxCalls,
    /// Whether the [service](crate::Screen) of the operator is asked.
    #[serde(default)]
    pub webhook: bool,
}

/// The most calls that a rule may allow: the time of each is kept.
const MOST_CALLS: u32 = 1_000;

impl Rule {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let counts = [self.max_calls.session, self.max_calls.hour];
        if counts
            .into_iter()
            .flatten()
            .any(|max| max.get() > MOST_CALLS)
        {
            return Err(InvalidConfig::new("max_calls", "must be at most 1000"));
        }
        if self.dry_run_argument.as_deref() == Some("") {
            return Err(InvalidConfig::new(
                "dry_run_argument",
                "must name an argument",
            ));
        }
        if self.to_string().is_empty() {
            let reason = "concerns calls without a check: expected `deny`, `allow`, \
                          `dry_run_argument`, `credentials`, `max_bytes`, `max_calls` or `webhook`";
            return Err(InvalidConfig::new("tool", reason));
        }
        Ok(())
    }

    /// Returns `true` if the rule concerns a call: by any of the tool's plans, if its arguments
    /// leave the plan in doubt, or are not those of the tool.
    pub(crate) fn concerns(&self, call: &ToolCall) -> bool {
        let tool = call.tool();
        let rules = 0..tool.refinements.rules().len();
        let in_doubt =
            matches!(call.applied(), Applied::Strictest(_)) || tool.definition.method.is_of_task();
        let others = rules.map(Applied::Rule).chain([Applied::Tool]);
        let mut plans = others.filter(|_| in_doubt).chain([call.applied()]);
        let admits = |plan| {
            let effect = tool.plan_applied(plan).effect;
            self.effect.admits(|it| *it == effect)
        };
        self.tool.admits(|glob| glob.fits(tool)) && plans.any(admits)
    }

    pub(crate) fn looks_at_results(&self) -> bool {
        self.webhook || self.credentials.results.is_some() || self.max_bytes.results.is_some()
    }
}

/// What the rule checks, without what it concerns: its keys and their values.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = serde_json::to_value(self).unwrap_or_default();
        let keys = written.as_object().into_iter().flatten();
        let checks = keys.filter(|(key, _)| !["tool", "effect"].contains(&key.as_str()));
        let checks = checks.filter_map(|(key, value)| match value {
            Value::Object(sides) => {
                let is_set = |(_, value): &(&String, &Value)| !value.is_null();
                let sides = sides.iter().filter(is_set);
                let sides: Vec<_> = sides
                    .map(|(side, value)| format!("{side} {value}"))
                    .collect();
                (!sides.is_empty()).then(|| format!("{key} ({})", sides.join(", ")))
            }
            Value::Null | Value::Bool(false) => None,
            value => Some(format!("{key} {value}")),
        });
        f.write_str(&checks.collect::<Vec<_>>().join(", "))
    }
}
