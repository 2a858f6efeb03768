//! Rules as an operator states them.

use std::fmt;

use super::{ArgumentPath, Condition};
use crate::{AnnotationProblem, Annotations, Severity};

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct When(Vec<(ArgumentPath, Condition)>);

impl When {
    /// Starts with one condition. `key` is the name of a top-level argument, or a JSON Pointer if
    /// it begins with `/`.
    ///
    /// # Errors
    ///
    /// [`InvalidRule`] if the key can name no argument.
    pub fn argument(key: &str, condition: Condition) -> Result<Self, InvalidRule> {
        Ok(Self(vec![(ArgumentPath::new(key)?, condition)]))
    }

    /// Adds a condition that must hold too.
    ///
    /// # Errors
    ///
    /// As [`argument`](Self::argument).
    pub fn and(mut self, key: &str, condition: Condition) -> Result<Self, InvalidRule> {
        self.0.push((ArgumentPath::new(key)?, condition));
        Ok(self)
    }

    /// Returns the conditions, each with its place; there is at least one.
    pub(crate) fn conditions(&self) -> &[(ArgumentPath, Condition)] {
        &self.0
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

/// What an operator says about some calls of a tool: conditions over the arguments, and the hints
/// of the calls that meet them.
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
    /// [`InvalidRule::NoHint`] if no hint is given, [`InvalidRule::Hints`] if they contradict each
    /// other.
    pub fn new(when: When, hints: Annotations) -> Result<Self, InvalidRule> {
        if hints == Annotations::default() {
            return Err(InvalidRule::NoHint);
        }
        let faults: Vec<_> = hints
            .validate()
            .into_iter()
            .filter(|problem| problem.severity() == Severity::Error)
            .collect();
        if faults.is_empty() {
            Ok(Self { when, hints })
        } else {
            Err(InvalidRule::Hints(faults))
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

    /// Lays the rule's hints over what the operator says about the tool. Of the two hints that
    /// exclude each other the rule's one stands, so the tool's must not be left beside it. Nor must
    /// its idempotence, if it was said of a read and the rule's calls are none.
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

/// A rule that cannot be used, and why.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InvalidRule {
    /// A condition names no argument.
    EmptyKey,
    /// A key begins with `/` and is not a JSON Pointer.
    Pointer {
        /// The key.
        key: String,
    },
    /// A pattern cannot be compiled.
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A list of values is empty.
    NoChoice,
    /// A rule gives no hint.
    NoHint,
    /// A rule's hints cannot be used.
    Hints(Vec<AnnotationProblem>),
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyKey => f.write_str(
                "expected the name of an argument, or a JSON Pointer such as \"/target/kind\", found an empty key",
            ),
            Self::Pointer { key } => write!(
                f,
                "{key:?} is not a JSON Pointer: expected `0` (for `~`) or `1` (for `/`) after a `~`"
            ),
            Self::Pattern { pattern, reason } => {
                write!(f, "{pattern:?} is not a pattern that can be used: {reason}")
            }
            Self::NoChoice => f.write_str("expected at least one value, found none: it would never hold"),
            Self::NoHint => f.write_str("expected at least one hint: the rule would change nothing"),
            Self::Hints(problems) => {
                for (index, problem) in problems.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(f, "{separator}{problem}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for InvalidRule {}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(hints: Annotations) -> Result<ArgumentRule, InvalidRule> {
        ArgumentRule::new(When::argument("action", Condition::equals("list"))?, hints)
    }

    #[test]
    fn a_rule_reads_like_prose() {
        let when = When::argument("action", Condition::equals("list"))
            .and_then(|when| when.and("/target/kind", Condition::absent()))
            .unwrap();
        assert_eq!(
            when.to_string(),
            r#"action = "list" and /target/kind is absent"#
        );
    }

    #[test]
    fn a_rule_that_says_nothing_or_contradicts_itself_is_refused() {
        assert_eq!(rule(Annotations::default()), Err(InvalidRule::NoHint));
        let both = Annotations::default()
            .with_read_only(true)
            .with_destructive(true);
        assert!(matches!(rule(both), Err(InvalidRule::Hints(_))));
        let odd = Annotations::default().with_cost(-1.0);
        assert!(
            rule(odd)
                .unwrap_err()
                .to_string()
                .contains("costHint is -1")
        );
    }

    #[test]
    fn what_the_rule_says_replaces_what_excludes_it() {
        let destroys = Annotations::default()
            .with_destructive(true)
            .with_tags(["a"]);
        let reads = rule(Annotations::default().with_read_only(true).with_tags(["b"])).unwrap();
        let over = reads.over(Some(&destroys));
        assert_eq!(
            (over.read_only_hint, over.destructive_hint),
            (Some(true), None)
        );
        assert_eq!(over.tags.unwrap_or_default(), ["a", "b"]);

        let only_reads = Annotations::default().with_read_only(true);
        let over = rule(destroys).unwrap().over(Some(&only_reads));
        assert_eq!(
            (over.read_only_hint, over.destructive_hint),
            (None, Some(true))
        );
    }

    #[test]
    fn idempotence_said_of_reads_is_not_said_of_the_writes_among_them() {
        let tool = Annotations::default()
            .with_read_only(true)
            .with_idempotent(true);
        let over = |hints: Annotations| rule(hints).unwrap().over(Some(&tool)).idempotent_hint;
        let writes = Annotations::default().with_read_only(false);
        assert_eq!(over(writes.clone()), None);
        assert_eq!(over(Annotations::default().with_destructive(true)), None);
        assert_eq!(over(writes.with_idempotent(true)), Some(true));
        assert_eq!(over(Annotations::default().with_tags(["a"])), Some(true));
    }
}
