//! Rules: which caller may call which tool.

mod rule;

use std::sync::Arc;

use callward_core::refine::{Applied, ArgumentsRead};
use callward_core::trail::{Decision, Stage, Verdict as Word};
use callward_core::{Ask, Authorization, Caller, Effect, Tool};
use sha2::{Digest, Sha256};

pub use self::rule::{Rule, Then};
use crate::hex;
pub use callward_core::{AnyOf, Glob, ToolGlob};

/// Rules in their order, of which the first that matches wins, and what holds without a match.
///
/// - If a condition depends on how the arguments are read, the strictest of what the rule and those
///   after it decide counts. A call that gets the strictest of a tool's plans for such a reason
///   gets the strictest of what the rules decide for each of its plans.
/// - A tool of security level `restricted` is denied unless a rule that names a role allows it:
///   rules without one that allow or ask do not match it, and nor does the default.
/// - A request about a task is decided as some call of its tool, whatever the arguments.
/// - Where there are neither rules nor a default but [`Then::Allow`], all calls are allowed.
///
/// Scopes are apart from the rules: a credential that is limited to scopes needs `tools:read` for a
/// call that only reads, `tools:destroy` for a destructive one, and `tools:write` for any other.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    /// What holds where no rule matches.
    default: Then,
    /// What is noted of a call that each rule decides, then of one that the default decides, and of
    /// a restricted one that no rule allows.
    notes: Vec<Arc<Authorization>>,
    revision: Option<Arc<str>>,
}

/// What a policy decides about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// A person must approve it.
    Ask,
    /// The credential lacks a scope: these are all that the call needs.
    NeedsScope(&'static [&'static str]),
    /// The call is refused, as if there were no such tool.
    Deny,
}

/// A verdict, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that decided.
    pub by: Arc<Authorization>,
    /// Of [`Verdict::Ask`]: the rule, and who approves.
    pub ask: Option<Arc<Ask>>,
}

impl Ruling {
    /// Returns the ruling as the decision of a stage. Where calls can be approved, one that asks is
    /// passed on.
    pub fn decision(&self, can_ask: bool) -> Decision {
        let rule = &self.by.rule;
        let (word, why) = match self.verdict {
            Verdict::Allow => (Word::Pass, format!("by rule `{rule}`")),
            Verdict::Ask if can_ask => (
                Word::Ask,
                format!("by rule `{rule}`: a person must approve the call"),
            ),
            Verdict::Ask => (
                Word::Ask,
                format!("by rule `{rule}`; approvals are not configured, so it is refused"),
            ),
            Verdict::NeedsScope(scopes) => {
                let scopes = scopes.join(" ");
                (Word::Refused, format!("it needs the scope `{scopes}`"))
            }
            Verdict::Deny => (
                Word::Refused,
                format!("by rule `{rule}`, as if there were no such tool"),
            ),
        };
        Decision::new(Stage::Authorize, word, why)
    }
}

/// The rule that decided, by its place in [`Policy::notes`].
type Decided = (Then, usize);

impl Policy {
    /// Takes rules in their order, and what holds where none matches.
    #[must_use]
    pub fn new(rules: Vec<Rule>, default: Then) -> Self {
        if rules.is_empty() && default == Then::Allow {
            return Self::default();
        }
        let written = serde_json::to_vec(&(&rules, default)).unwrap_or_default();
        let digest = Sha256::digest(&written).into_iter();
        let revision: Arc<str> = hex(digest.take(6)).into();
        let named = |(index, rule): (usize, &Rule)| {
            rule.name.clone().unwrap_or_else(|| (index + 1).to_string())
        };
        let names = rules.iter().enumerate().map(named);
        let names = names.chain(["default".to_owned(), "restricted".to_owned()]);
        let note = |rule: String| {
            Arc::new(Authorization {
                rule: rule.into(),
                policy: Some(revision.clone()),
            })
        };
        Self {
            notes: names.map(note).collect(),
            revision: Some(revision),
            default,
            rules,
        }
    }

    /// Returns `true` if every caller may call every tool, scopes aside.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.revision.is_none()
    }

    /// Names the content of all rules by a short digest; `None` if there are none.
    #[must_use]
    pub fn revision(&self) -> Option<&Arc<str>> {
        self.revision.as_ref()
    }

    /// Decides about a call with these raw arguments that gets this one of the tool's plans.
    #[must_use]
    pub fn decide(
        &self,
        caller: &Caller,
        tool: &Tool,
        applied: Applied,
        arguments: &[u8],
    ) -> Ruling {
        let (then, by) = match self.is_open() {
            true => (Then::Allow, 0),
            // the arguments of the call that made the task are not known any more
            false if tool.definition.method.is_of_task() => {
                self.of_some_call(caller, tool, applied)
            }
            false => {
                let has_conditions = self.rules.iter().any(|rule| rule.when.is_some());
                let read = if has_conditions { arguments } else { b"" };
                let read = ArgumentsRead::new(read);
                let decided = |applied| self.decide_one(caller, tool, applied, &read);
                match applied {
                    // no rule over arguments is trusted, and none is ignored
                    Applied::Strictest(_) => plans(tool)
                        .map(decided)
                        .fold((Then::Allow, self.rules.len()), stricter),
                    applied => decided(applied),
                }
            }
        };
        let needed = needed_scopes(tool.plan_applied(applied).effect);
        let lacks = caller.credential.scopes.as_ref().is_some_and(|scopes| {
            let has = |scope: &&str| scopes.contains(*scope);
            !needed.iter().all(has)
        });
        let verdict = match then {
            Then::Deny => Verdict::Deny,
            _ if lacks => Verdict::NeedsScope(needed),
            Then::Ask => Verdict::Ask,
            Then::Allow => Verdict::Allow,
        };
        let ask = (verdict == Verdict::Ask).then(|| self.ask(by)).flatten();
        let by = match (verdict, self.notes.get(by)) {
            (Verdict::Allow | Verdict::Ask | Verdict::Deny, Some(note)) => note.clone(),
            _ => Arc::new(Authorization {
                rule: if lacks { "scopes" } else { "default" }.into(),
                policy: self.revision.clone(),
            }),
        };
        Ruling { verdict, by, ask }
    }

    /// Returns how a rule asks, by its place, or the default.
    fn ask(&self, place: usize) -> Option<Arc<Ask>> {
        let rule = self.rules.get(place);
        Some(Arc::new(Ask {
            rule: self.notes.get(place)?.rule.clone(),
            by: rule.and_then(|rule| rule.by),
            roles: rule.map_or_else(Vec::new, |rule| rule.approvers.elements().to_vec()),
        }))
    }

    /// Returns `true` if the tool is listed for the caller: some call of it may not be denied.
    /// Scopes do not matter, as a client can ask its user for more.
    #[must_use]
    pub fn lists(&self, caller: &Caller, tool: &Tool) -> bool {
        let is_listed = |applied| self.of_some_call(caller, tool, applied).0 != Then::Deny;
        self.is_open() || plans(tool).any(is_listed)
    }

    /// Returns `true` if a person may have to approve some call of the tool, of some caller.
    #[must_use]
    pub fn may_ask(&self, tool: &Tool) -> bool {
        let asks = |applied| {
            let mut rules = self.rules.iter().filter(|rule| rule.fits(tool, applied));
            let decides = rules.find(|rule| rule.then == Then::Ask || rule.is_for_all());
            let unmatched = self.unmatched(tool, applied).0;
            decides.map_or(unmatched, |rule| rule.then) == Then::Ask
        };
        plans(tool).any(asks)
    }

    /// Returns the decision about the arguments for which it is not to deny, if there are any.
    fn of_some_call(&self, caller: &Caller, tool: &Tool, applied: Applied) -> Decided {
        let mut rules = self.concerning(caller, tool, applied);
        let first = rules.find(|(_, rule)| rule.then != Then::Deny || rule.when.is_none());
        match first {
            Some((index, rule)) => (rule.then, index),
            None => self.unmatched(tool, applied),
        }
    }

    fn decide_one(
        &self,
        caller: &Caller,
        tool: &Tool,
        applied: Applied,
        arguments: &ArgumentsRead<'_>,
    ) -> Decided {
        let mut doubtful: Option<Decided> = None;
        let strictest = |doubtful: Option<Decided>, decided| match doubtful {
            Some(doubtful) => stricter(doubtful, decided),
            None => decided,
        };
        for (index, rule) in self.concerning(caller, tool, applied) {
            let matches = rule
                .when
                .as_ref()
                .map_or(Some(true), |when| when.holds(arguments));
            let decided = (rule.then, index);
            match matches {
                Some(true) => return strictest(doubtful, decided),
                Some(false) => {}
                None => doubtful = Some(strictest(doubtful, decided)),
            }
        }
        strictest(doubtful, self.unmatched(tool, applied))
    }

    fn concerning(
        &self,
        caller: &Caller,
        tool: &Tool,
        applied: Applied,
    ) -> impl Iterator<Item = (usize, &Rule)> {
        let rules = self.rules.iter().enumerate();
        rules.filter(move |(_, rule)| rule.concerns(caller, tool, applied))
    }

    /// What holds where no rule matches.
    fn unmatched(&self, tool: &Tool, applied: Applied) -> Decided {
        let place = self.rules.len();
        match tool.plan_applied(applied).limits.restricted {
            true => (Then::Deny, place + 1),
            false => (self.default, place),
        }
    }
}

/// The plans of a tool: its own, and those of its rules over arguments.
fn plans(tool: &Tool) -> impl Iterator<Item = Applied> {
    let rules = 0..tool.refinements.rules().len();
    [Applied::Tool].into_iter().chain(rules.map(Applied::Rule))
}

/// Returns the stricter of two decisions, the first of equals.
fn stricter(one: Decided, other: Decided) -> Decided {
    if other.0 > one.0 { other } else { one }
}

/// All scopes there are, the least first: one for each effect of a tool.
pub const SCOPES: [&str; 3] = ["tools:read", "tools:write", "tools:destroy"];

/// Returns all scopes that a call of this effect needs.
const fn needed_scopes(effect: Effect) -> &'static [&'static str] {
    match effect {
        Effect::ReadOnly => &["tools:read"],
        Effect::Idempotent | Effect::Mutating => &["tools:write"],
        Effect::Destructive => &["tools:destroy"],
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::tool;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_may_be_asked_about_unless_each_call_is_decided_before() {
        let read = tool("x").read_only().build();
        let secret = |hints: &mut callward_core::Annotations| {
            hints.security_level = Some(callward_core::SecurityLevel::Restricted);
        };
        let restricted = tool("x").read_only().hint(secret).build();
        let ask = json!({"then": "ask"});
        let allow = |more: &str| {
            let mut rule = json!({"effect": ["read_only"], "then": "allow"});
            if !more.is_empty() {
                rule[more] = json!(["a"]);
            }
            rule
        };
        let when = |then| json!({"when": {"a": 1}, "then": then});
        for (rules, tool, default, asks) in [
            (vec![], &read, Then::Allow, false),
            (vec![], &read, Then::Ask, true),
            (vec![ask.clone()], &read, Then::Allow, true),
            (vec![when("ask")], &read, Then::Deny, true),
            (vec![allow(""), ask.clone()], &read, Then::Ask, false),
            (
                vec![json!({"then": "deny"}), ask.clone()],
                &read,
                Then::Ask,
                false,
            ),
            (vec![when("allow"), ask.clone()], &read, Then::Allow, true),
            (
                vec![allow("principal"), ask.clone()],
                &read,
                Then::Allow,
                true,
            ),
            (vec![allow("role"), ask.clone()], &read, Then::Allow, true),
            (vec![allow("scope"), ask.clone()], &read, Then::Allow, true),
            (vec![allow("issuer"), ask.clone()], &read, Then::Allow, true),
            (
                vec![json!({"tool": ["other.*"], "then": "ask"})],
                &read,
                Then::Allow,
                false,
            ),
            // such a call is denied unless a rule names a role
            (vec![ask], &restricted, Then::Ask, false),
            (
                vec![json!({"role": ["a"], "then": "ask"})],
                &restricted,
                Then::Deny,
                true,
            ),
        ] {
            let written = json!(rules).to_string();
            let rules = rules
                .into_iter()
                .map(|rule| serde_json::from_value(rule).unwrap());
            let policy = Policy::new(rules.collect(), default);
            assert_eq!(policy.may_ask(tool), asks, "{written}, else {default}");
        }
    }
}
