//! Rules bound to a tool: they select the plan of a call.

use std::sync::Arc;

use super::compare::Answer;
use super::read::Found;
use super::strictest::strictest;
use super::{ArgumentPath, ArgumentRule, Condition};
use crate::members::Members;
use crate::resolve::{Hints, resolve};
use crate::{CallPlan, Profile, Resolved};

/// Which of a tool's plans a call gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// The tool's own: it has no rules, or none matches.
    Tool,
    /// That of a rule, counted from 0: the first that matches.
    Rule(usize),
    /// The strictest of all: the arguments may be read in more than one way.
    Strictest(Doubt),
}

/// Why the matching rule is unknown.
///
/// If the arguments can be read in two ways, no rule is trusted and none is ignored: the call gets
/// the strictest of all the tool's plans, its own and those of its rules, in every respect.
/// There is doubt if
///
/// - the arguments are not JSON, or not an object;
/// - a member that any rule looks for, or a member on the way to it, is given twice, or under a
///   name that some parsers take for it: some take the first, some the last, some do not
///   distinguish `Action` from `action`, and some end a name at a control character;
/// - a text stands where a rule expects an object or array, and it may itself be JSON that the
///   server unpacks;
/// - a rule tests for the presence of an argument that is `null`: to many servers that is the same
///   as absent;
/// - two numbers differ, but not once they are rounded to a double;
/// - a text of more than 16 KiB is to be matched with a pattern.
///
/// The last three concern one condition, so they matter only if the rules before it do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The arguments are not JSON.
    NotJson,
    /// The arguments are JSON, but not an object.
    NotAnObject,
    /// Readers may disagree about the value at this place.
    Argument {
        /// Its number among the places that rules look at.
        path: usize,
    },
    /// A condition can be neither affirmed nor denied.
    Condition {
        /// The rule, counted from 0.
        rule: usize,
    },
}

/// Why a rule does not match.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Unmet<'a> {
    /// The place of the argument.
    pub path: &'a ArgumentPath,
    /// The condition that does not hold.
    pub condition: &'a Condition,
    /// The condition fails for every reader of the arguments; otherwise it depends on the reader.
    pub is_certain: bool,
}

/// One rule, bound to a tool, with the resulting hints.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RefinedRule {
    /// The rule as the operator states it.
    pub rule: ArgumentRule,
    /// The effective hints of the calls that match, each with its source and reason.
    pub resolved: Resolved,
    /// The plan of the calls that match.
    pub plan: Arc<CallPlan>,
}

/// All rules of one tool. Most tools have none.
///
/// ```
/// use callward_core::infer::Inferred;
/// use callward_core::refine::{ArgumentRule, Condition, Refinements, When};
/// use callward_core::resolve::{Hints, Trust, resolve};
/// use callward_core::{Annotations, CallPlan, Effect, Profile};
///
/// let reads = ArgumentRule::new(
///     When::argument("action", Condition::equals("list"))?,
///     Annotations::default().with_read_only(true),
/// )?;
/// let (inferred, profile) = (Inferred::default(), Profile::standard());
/// let declared = Annotations::default().with_destructive(true);
/// let hints = Hints::new(&inferred, &declared, Trust::Standard);
/// let own = CallPlan::derive(&resolve(&hints), &profile);
///
/// let rules = Refinements::bind(&[reads], &hints, &own, &profile);
/// let effect = |arguments: &str| {
///     let applied = rules.apply(arguments.as_bytes());
///     rules.plan(applied).map_or(own.effect, |plan| plan.effect)
/// };
/// assert_eq!(effect(r#"{"action": "list"}"#), Effect::ReadOnly);
/// assert_eq!(effect(r#"{"action": "close"}"#), Effect::Destructive);
/// assert_eq!(effect(r#"{"action": "list", "action": "close"}"#), Effect::Destructive);
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Refinements {
    rules: Box<[RefinedRule]>,
    /// Every place that any rule looks at, once.
    paths: Box<[ArgumentPath]>,
    strictest: Option<Arc<CallPlan>>,
    /// The rule with the most harmful plan, if it is more harmful than the tool's own.
    worst: Option<usize>,
}

impl Refinements {
    /// Binds rules to a tool: `hints` is what is said about the tool, `own` the plan that was
    /// derived from it.
    pub fn bind(
        rules: &[ArgumentRule],
        hints: &Hints<'_>,
        own: &CallPlan,
        profile: &Profile,
    ) -> Self {
        let mut paths: Vec<ArgumentPath> = Vec::new();
        for (path, _) in rules.iter().flat_map(|rule| rule.when().conditions()) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        let rules: Vec<RefinedRule> = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                let operator = Some(&rule.over(hints.operator));
                let mut resolved = resolve(&Hints { operator, ..*hints });
                let reason = format!("rule {} of this tool: {}", index + 1, rule.when());
                resolved.attribute(rule.hints(), &reason);
                RefinedRule {
                    plan: Arc::new(CallPlan::derive(&resolved, profile)),
                    resolved,
                    rule: rule.clone(),
                }
            })
            .collect();
        let plans = rules.iter().map(|rule| &*rule.plan);
        let (mut worst, mut most) = (None, own);
        for (index, plan) in plans.clone().enumerate() {
            if plan.effect > most.effect {
                (worst, most) = (Some(index), plan);
            }
        }
        let strictest = (!rules.is_empty()).then(|| Arc::new(strictest(own, most, plans)));
        Self {
            rules: rules.into(),
            paths: paths.into(),
            strictest,
            worst,
        }
    }

    /// Returns the rules in the order they are tried.
    pub fn rules(&self) -> &[RefinedRule] {
        &self.rules
    }

    /// Returns which plan a call with these arguments gets. They are read once, and not at all
    /// where there is no rule.
    #[inline]
    pub fn apply(&self, arguments: &[u8]) -> Applied {
        if self.rules.is_empty() {
            return Applied::Tool;
        }
        self.find(arguments).unwrap_or_else(Applied::Strictest)
    }

    /// Returns the plan that applies; `None` for the tool's own.
    pub fn plan(&self, applied: Applied) -> Option<&Arc<CallPlan>> {
        match applied {
            Applied::Tool => None,
            // a number from another tool selects the strictest plan
            Applied::Rule(index) => {
                let rule = self.rules.get(index).map(|rule| &rule.plan);
                rule.or(self.strictest.as_ref())
            }
            Applied::Strictest(_) => self.strictest.as_ref(),
        }
    }

    /// Returns the hints that the plan that applies was derived from; `None` for the tool's own.
    ///
    /// The strictest plan takes its effect from one of the others, so the hints are those of that
    /// one: the first of those that do most harm.
    pub(crate) fn resolved(&self, applied: Applied) -> Option<&Resolved> {
        let index = match applied {
            Applied::Tool => None,
            Applied::Rule(index) if index < self.rules.len() => Some(index),
            Applied::Rule(_) | Applied::Strictest(_) => self.worst,
        };
        Some(&self.rules.get(index?)?.resolved)
    }

    /// Returns a condition of a rule, counted from 0, that these arguments do not certainly meet:
    /// why it does not match. The first that certainly does not hold, or else the first in doubt;
    /// `None` if they meet all.
    pub fn unmet(&self, rule: usize, arguments: &[u8]) -> Option<Unmet<'_>> {
        let members = std::str::from_utf8(arguments)
            .ok()
            .and_then(|text| Members::read(text).ok());
        let answer = |path, condition: &Condition| {
            let found = members.as_ref().map(|members| members.find(path));
            condition.holds(found.unwrap_or(Found::Doubtful))
        };
        let conditions = self.rules.get(rule)?.rule.when().conditions();
        let mut all = conditions.iter().filter_map(|(path, condition)| {
            let is_certain = match answer(path, condition) {
                Answer::Yes => return None,
                Answer::No => true,
                Answer::Unsure => false,
            };
            Some(Unmet {
                path,
                condition,
                is_certain,
            })
        });
        let first = all.next()?;
        let certain = all.find(|unmet| unmet.is_certain && !first.is_certain);
        Some(certain.unwrap_or(first))
    }

    /// Returns, as the rest of a sentence, why the matching rule is unknown.
    pub fn describe(&self, doubt: Doubt) -> String {
        match doubt {
            Doubt::NotJson => "its arguments are not JSON".to_owned(),
            Doubt::NotAnObject => "its arguments are not a JSON object".to_owned(),
            Doubt::Argument { path } => match self.paths.get(path) {
                Some(path) => format!(
                    "readers may disagree about `{path}`: it, or a member on the way to it, is given \
                     twice, under a name that some take for it, or packed into a text"
                ),
                None => "readers may disagree about an argument".to_owned(),
            },
            Doubt::Condition { rule } => match self.rules.get(rule) {
                Some(bound) => format!(
                    "it depends on the reader whether rule {} matches: {}",
                    rule + 1,
                    bound.rule.when()
                ),
                None => "it depends on the reader whether a rule matches".to_owned(),
            },
        }
    }

    fn find(&self, arguments: &[u8]) -> Result<Applied, Doubt> {
        let text = std::str::from_utf8(arguments).map_err(|_| Doubt::NotJson)?;
        let members = Members::read(text).map_err(|error| {
            if error.is_data() {
                Doubt::NotAnObject
            } else {
                Doubt::NotJson
            }
        })?;
        let doubtful = |path: &ArgumentPath| matches!(members.find(path), Found::Doubtful);
        if let Some(path) = self.paths.iter().position(doubtful) {
            return Err(Doubt::Argument { path });
        }
        for (index, rule) in self.rules.iter().enumerate() {
            match rule.rule.when().answer(&members) {
                Answer::Yes => return Ok(Applied::Rule(index)),
                Answer::No => {}
                Answer::Unsure => return Err(Doubt::Condition { rule: index }),
            }
        }
        Ok(Applied::Tool)
    }
}
