//! Validates a set of hints: finds every problem, not only the first.

use crate::{Annotations, Field, Severity};

/// One problem of a set of hints.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationProblem {
    /// `readOnlyHint` and `destructiveHint` are both true.
    #[error("readOnlyHint and destructiveHint are both true")]
    ReadOnlyAndDestructive,
    /// A number is negative, infinite or not a number.
    #[error("{field} is {value}, not a number from 0 up")]
    InvalidNumber {
        /// The field.
        field: Field,
        /// Its value.
        value: f64,
    },
    /// A tag is empty or only white space.
    #[error("tag {} is blank", index + 1)]
    BlankTag {
        /// Its place in the list, from 0.
        index: usize,
    },
    /// `destructiveHint` is true and `requiresConfirmation` is false: the tool still asks.
    #[error("requiresConfirmation is false on a destructive tool, which asks all the same")]
    DestructiveUnconfirmed,
}

impl AnnotationProblem {
    /// Returns how much it matters.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::DestructiveUnconfirmed => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns the field to look at first.
    pub const fn field(&self) -> Field {
        match self {
            Self::ReadOnlyAndDestructive => Field::ReadOnly,
            Self::InvalidNumber { field, .. } => *field,
            Self::BlankTag { .. } => Field::Tags,
            Self::DestructiveUnconfirmed => Field::RequiresConfirmation,
        }
    }
}

impl Annotations {
    /// Returns all problems of the hints.
    ///
    /// A tool with an [error](Severity::Error) is refused at registration.
    ///
    /// ```
    /// use callward_core::{Annotations, Severity};
    ///
    /// let hints = Annotations::default().with_cost(-1.0).with_tags([" "]);
    /// let problems = hints.validate();
    /// assert_eq!(problems[0].to_string(), "costHint is -1, not a number from 0 up");
    /// assert_eq!(problems[1].to_string(), "tag 1 is blank");
    /// assert!(problems.iter().all(|problem| problem.severity() == Severity::Error));
    /// ```
    pub fn validate(&self) -> Vec<AnnotationProblem> {
        let mut problems = Vec::new();
        let destructive = self.destructive_hint == Some(true);
        if destructive && self.read_only_hint == Some(true) {
            problems.push(AnnotationProblem::ReadOnlyAndDestructive);
        }
        for (field, value) in [
            (Field::EstimatedDuration, self.estimated_duration),
            (Field::RateLimitHint, self.rate_limit_hint),
            (Field::CostHint, self.cost_hint),
        ] {
            if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
                problems.push(AnnotationProblem::InvalidNumber { field, value });
            }
        }
        for (index, tag) in self.tags.iter().flatten().enumerate() {
            if tag.trim().is_empty() {
                problems.push(AnnotationProblem::BlankTag { index });
            }
        }
        if destructive && self.requires_confirmation == Some(false) {
            problems.push(AnnotationProblem::DestructiveUnconfirmed);
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_reported() {
        let hints = Annotations::stated(
            "readOnly=true destructive=true requiresConfirmation=false rateLimitHint=-1",
        );
        let problems = hints
            .with_estimated_duration(f64::NAN)
            .with_cost(f64::INFINITY)
            .with_tags(["ok", "", "\t"])
            .validate();
        let fields: Vec<_> = problems.iter().map(|one| one.field().as_str()).collect();
        assert_eq!(
            fields.join(" "),
            "readOnlyHint estimatedDuration rateLimitHint costHint tags tags requiresConfirmation"
        );
        let severities = problems.iter().map(AnnotationProblem::severity);
        let errors = severities.take_while(|one| *one == Severity::Error);
        assert_eq!(errors.count(), 6, "only the last one is a warning");
    }

    #[test]
    fn odd_but_harmless_hints_pass() {
        let hints = Annotations::stated(
            "readOnly=true idempotent=false destructive=false requiresConfirmation=false \
             estimatedDuration=0 rateLimitHint=-0.0 costHint=1e308",
        );
        assert_eq!(hints.with_tags(["a", "a"]).validate(), []);
    }
}
