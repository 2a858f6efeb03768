//! The rules that an operator states.

use std::fmt;

use super::compare::Answer;
use super::{ArgumentPath, Condition};
use crate::judge::refusal;
use crate::members::Members;
use crate::{Annotations, InvalidValue};

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct When(Vec<(ArgumentPath, Condition)>);

impl When {
    /// Starts with one condition. `key` is the name of a top-level argument, or a JSON Pointer if
    /// it begins with `/`.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the key can name no argument.
    pub fn argument(key: &str, condition: Condition) -> Result<Self, InvalidValue> {
        Ok(Self(vec![(ArgumentPath::new(key)?, condition)]))
    }

    /// Adds a condition that must hold too.
    ///
    /// # Errors
    ///
    /// As [`argument`](Self::argument).
    pub fn and(mut self, key: &str, condition: Condition) -> Result<Self, InvalidValue> {
        self.0.push((ArgumentPath::new(key)?, condition));
        Ok(self)
    }

    /// Returns the conditions, each with its place; there is at least one.
    pub(crate) fn conditions(&self) -> &[(ArgumentPath, Condition)] {
        &self.0
    }
}

/// The arguments of a call, read once for any number of conditions.
#[derive(Debug)]
pub struct ArgumentsRead<'a>(Option<Members<'a>>);

impl<'a> ArgumentsRead<'a> {
    /// Reads raw JSON arguments. Every condition over ones that are no JSON object is in doubt.
    pub fn new(arguments: &'a [u8]) -> Self {
        let text = std::str::from_utf8(arguments).ok();
        Self(text.and_then(|text| Members::read(text).ok()))
    }
}

impl When {
    /// Returns whether all conditions hold; `None` if that depends on how the arguments are read,
    /// as [`Doubt`](super::Doubt) describes.
    pub fn holds(&self, arguments: &ArgumentsRead<'_>) -> Option<bool> {
        match self.answer(arguments.0.as_ref()?) {
            Answer::Yes => Some(true),
            Answer::No => Some(false),
            Answer::Unsure => None,
        }
    }

    pub(super) fn answer(&self, arguments: &Members<'_>) -> Answer {
        let conditions = self.0.iter();
        conditions
            .map(|(path, condition)| condition.holds(arguments.find(path)))
            .fold(Answer::Yes, Ord::min)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (path, condition)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " and " };
            write!(f, "{separator}{path} {condition}")?;
        }
        Ok(())
    }
}

/// A rule of an operator for some calls of a tool: conditions over the arguments, and the hints of
/// the calls that meet them.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentRule {
    when: When,
    hints: Annotations,
}

impl ArgumentRule {
    /// Creates a rule that gives these hints to calls that meet these conditions.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if no hint is given, or if they contradict each other.
    pub fn new(when: When, hints: Annotations) -> Result<Self, InvalidValue> {
        if hints == Annotations::default() {
            let message = "expected at least one hint: the rule would change nothing";
            return Err(InvalidValue::new(message));
        }
        match refusal(&hints.validate()) {
            Some(faults) => Err(InvalidValue::new(faults)),
            None => Ok(Self { when, hints }),
        }
    }

    /// Returns the conditions.
    pub fn when(&self) -> &When {
        &self.when
    }

    /// Returns the hints.
    pub fn hints(&self) -> &Annotations {
        &self.hints
    }

    /// Lays the rule's hints over the operator's hints for the tool. Of the two hints that exclude
    /// each other the rule's one stands, so the tool's must not be left beside it. Nor must its
    /// idempotence, if it was said of a read and the rule's calls are none.
    pub(super) fn over(&self, operator: Option<&Annotations>) -> Annotations {
        let mut base = operator.cloned().unwrap_or_default();
        let writes =
            self.hints.read_only_hint == Some(false) || self.hints.destructive_hint == Some(true);
        if writes && base.read_only_hint == Some(true) {
            base.idempotent_hint = None;
        }
        if self.hints.read_only_hint == Some(true) && base.destructive_hint == Some(true) {
            base.destructive_hint = None;
        }
        if self.hints.destructive_hint == Some(true) && base.read_only_hint == Some(true) {
            base.read_only_hint = None;
        }
        base.merge(&self.hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(stated: &str) -> Result<ArgumentRule, InvalidValue> {
        let when = When::argument("action", Condition::equals("list"))?;
        ArgumentRule::new(when, Annotations::stated(stated))
    }

    #[test]
    fn a_rule_that_says_nothing_or_contradicts_itself_is_refused() {
        for (stated, reason) in [
            ("", "expected at least one hint"),
            ("readOnly=true destructive=true", "both true"),
            ("costHint=-1", "costHint is -1"),
        ] {
            let fault = rule(stated).unwrap_err().to_string();
            assert!(fault.contains(reason), "{fault}");
        }
    }

    #[test]
    fn a_rule_replaces_what_excludes_it_and_the_idempotence_of_reads() {
        let rows = "
destructive=true tags=a | readOnly=true tags=b | readOnly=true tags=a,b
readOnly=true | destructive=true | destructive=true
readOnly=true idempotent=true | readOnly=false | readOnly=false
readOnly=true idempotent=true | destructive=true | destructive=true
readOnly=true idempotent=true | readOnly=false idempotent=true | readOnly=false idempotent=true
readOnly=true idempotent=true | tags=a | readOnly=true idempotent=true tags=a";
        for row in rows.lines().skip(1) {
            let [own, stated, over] = row.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("{row}");
            };
            let laid = rule(stated).unwrap().over(Some(&Annotations::stated(own)));
            assert_eq!(laid, Annotations::stated(over), "{row}");
        }
    }
}
