//! What a change of hints permits: more than before, or less.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Annotations, SecurityLevel};
use crate::Field;

words! {
    /// Where a changed hint leads.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Direction {
        /// Calls are watched more, or are allowed less.
        Stricter = "stricter",
        /// Neither.
        Neutral = "neutral",
        /// Calls are watched less, or are allowed more.
        Looser = "looser",
    }
}

/// One hint that two sets state differently; `null` where one states none.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a change is these four")]
pub struct HintChange {
    /// The hint.
    pub field: Field,
    /// What the first set states.
    pub from: Value,
    /// What the second set states.
    pub to: Value,
    /// Where that leads.
    pub direction: Direction,
}

impl Annotations {
    /// Returns the hints that later ones state differently. Unknown fields do not count.
    ///
    /// Each hint is compared on its own: of two sets without a looser hint, the second gives a plan
    /// at least as strict. A hint that is left out counts as between its
    /// two values. A read-only tool
    /// can destroy nothing and be repeated, so its other hints of effect say nothing. Rules may
    /// allow calls by tags, so other tags count as looser.
    ///
    /// ```
    /// use callward_core::{Annotations, Direction};
    ///
    /// let destroys = Annotations::default().with_destructive(true);
    /// let reads = Annotations::default().with_read_only(true);
    /// let is_looser = |from: &Annotations, to: &Annotations| {
    ///     from.changes_to(to).iter().any(|change| change.direction == Direction::Looser)
    /// };
    /// assert!(is_looser(&destroys, &reads));
    /// assert!(!is_looser(&reads, &destroys));
    /// ```
    pub fn changes_to(&self, later: &Self) -> Vec<HintChange> {
        let values = |hints| serde_json::to_value(hints).unwrap_or_default();
        let (old, new): (Value, Value) = (values(self), values(later));
        let changed = Field::ALL.iter().filter_map(|field| {
            let value = |of: &Value| of.get(field.as_str()).cloned().unwrap_or_default();
            let (from, to) = (value(&old), value(&new));
            let (was, is) = (self.leeway(*field), later.leeway(*field));
            let direction = match was.total_cmp(&is) {
                _ if from == to => return None,
                _ if *field == Field::Tags => Direction::Looser,
                Ordering::Less => Direction::Looser,
                Ordering::Equal => Direction::Neutral,
                Ordering::Greater => Direction::Stricter,
            };
            Some(HintChange {
                field: *field,
                from,
                to,
                direction,
            })
        });
        changed.collect()
    }

    /// Returns how much a hint leaves to calls: the more, the greater.
    fn leeway(&self, field: Field) -> f64 {
        let is_read = self.read_only_hint == Some(true);
        let flag = |value: Option<bool>, loose: bool| match value {
            Some(value) if value == loose => 2.0,
            Some(_) => 0.0,
            None => 1.0,
        };
        match field {
            Field::ReadOnly => flag(self.read_only_hint, true),
            Field::Destructive | Field::Idempotent if is_read => 2.0,
            Field::Destructive => flag(self.destructive_hint, false),
            Field::Idempotent => flag(self.idempotent_hint, true),
            Field::OpenWorld => flag(self.open_world_hint, false),
            Field::RequiresConfirmation => flag(self.requires_confirmation, false),
            Field::AuditRequired => flag(self.audit_required, false),
            Field::RateLimitHint => self.rate_limit_hint.unwrap_or(f64::INFINITY),
            Field::CostHint => -self.cost_hint.unwrap_or_default(),
            Field::SecurityLevel => match self.security_level {
                Some(SecurityLevel::Restricted) => 0.0,
                Some(SecurityLevel::Internal) => 1.0,
                None => 2.0,
                Some(SecurityLevel::Public) => 3.0,
            },
            Field::Title | Field::Tags | Field::EstimatedDuration | Field::Complexity => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::RuleSet;
    use crate::{Hints, Profile, Severity, Subject, Trust, judge};

    #[test]
    fn each_hint_has_a_direction() {
        for (from, to, expected) in [
            ("readOnly=false", "readOnly=true", "looser"),
            ("", "readOnly=true", "looser"),
            ("readOnly=false", "", "looser"),
            ("destructive=true", "", "looser"),
            ("destructive=true", "readOnly=true", "looser looser"),
            (
                "readOnly=true",
                "destructive=false idempotent=true",
                "stricter neutral neutral",
            ),
            ("openWorld=true", "openWorld=false", "looser"),
            (
                "requiresConfirmation=true",
                "requiresConfirmation=false",
                "looser",
            ),
            ("auditRequired=true", "", "looser"),
            (
                "securityLevel=restricted",
                "securityLevel=internal",
                "looser",
            ),
            ("", "securityLevel=internal", "stricter"),
            ("rateLimitHint=5", "rateLimitHint=6", "looser"),
            ("", "rateLimitHint=6", "stricter"),
            ("costHint=5", "costHint=6", "stricter"),
            ("tags=a,b", "tags=a", "looser"),
            ("title=a", "title=b", "neutral"),
            ("complexity=simple", "complexity=complex", "neutral"),
            ("estimatedDuration=5", "", "neutral"),
            ("readOnly=true tags=a", "readOnly=true tags=a", ""),
        ] {
            let changes = Annotations::stated(from).changes_to(&Annotations::stated(to));
            let found: Vec<_> = changes.iter().map(|it| it.direction.as_str()).collect();
            assert_eq!(found.join(" "), expected, "{from} -> {to}");
        }
    }

    /// All sets of the four hints that decide the plan.
    fn all_hints() -> Vec<Annotations> {
        let each = || [None, Some(false), Some(true)].into_iter();
        let flags = each().flat_map(|a| each().flat_map(move |b| each().map(move |c| (a, b, c))));
        let flags = flags.flat_map(|three| each().map(move |confirm| (three, confirm)));
        let hints = flags.map(|((reads, destroys, repeats), confirm)| {
            let mut hints = Annotations::default();
            (hints.read_only_hint, hints.destructive_hint) = (reads, destroys);
            (hints.idempotent_hint, hints.requires_confirmation) = (repeats, confirm);
            hints
        });
        let is_valid = |hints: &Annotations| {
            let problems = hints.validate();
            problems.iter().all(|it| it.severity() != Severity::Error)
        };
        hints.filter(is_valid).collect()
    }

    #[test]
    fn without_a_looser_hint_no_plan_is_looser() {
        let inferred = RuleSet::Standard.infer(&Subject::new("frobnicate"));
        let (all, mut compared) = (all_hints(), 0);
        for profile in Profile::NAMES
            .iter()
            .filter_map(|name| Profile::by_name(name))
        {
            for trust in Trust::ALL {
                let plan = |hints| judge(&Hints::new(&inferred, hints, *trust), &profile).plan;
                let plans: Vec<_> = all.iter().map(|hints| (hints, plan(hints))).collect();
                for ((from, old), (to, new)) in plans
                    .iter()
                    .flat_map(|old| plans.iter().map(move |new| (old, new)))
                {
                    let changes = from.changes_to(to);
                    if changes.iter().any(|it| it.direction == Direction::Looser) {
                        continue;
                    }
                    compared += 1;
                    let state = format!("{trust} {}: {from:?} -> {to:?}", profile.name);
                    assert!(old.effect <= new.effect, "{state}");
                    assert!(old.retry.min(new.retry) == new.retry, "{state}");
                    assert!(old.confirm.min(new.confirm) == new.confirm, "{state}");
                }
            }
        }
        assert!(compared > 1000, "{compared}");
    }
}
