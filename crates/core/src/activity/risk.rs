//! How risky a call is, as one number.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::{Annotations, CallPlan, Complexity, Effect, Field, Resolved, SecurityLevel, Source};

/// `costHint` above these adds a point each.
const COSTS: [f64; 3] = [0.0, 10.0, 100.0];

/// How risky a call is, from 0 (reads what is public, at home) to 100.
///
/// The plan's effect gives the band; bands do not overlap, so no detail of a harmless call makes it
/// look worse than a harmful one:
///
/// | effect | band |
/// | --- | --- |
/// | `ReadOnly` | 0 to 19 |
/// | `Idempotent` | 20 to 39 |
/// | `Mutating` | 40 to 69 |
/// | `Destructive` | 70 to 100 |
///
/// Within its band a call has this many points more:
///
/// | points | for |
/// | --- | --- |
/// | 4, 2, 0 | an open world, one that nobody speaks of, a closed one |
/// | 5, 2, 0 | results that are restricted, internal (or unsaid), public |
/// | 2 | `requiresConfirmation` |
/// | 2, 1, 0 | a complex tool, a medium one, a simple one (or unsaid) |
/// | 0 to 3 | `costHint`: more than 0, more than 10, more than 100 |
/// | 2 | a read or an idempotent call that was only concluded to be one |
/// | 9 | a destructive call that [takes away](Resolved::takes_away), and does not only overwrite |
/// | 5 | a destructive call that is not idempotent |
///
/// A hint that is tightened never lowers the number.
///
/// ```
/// use callward_core::activity::RiskLevel;
/// use callward_core::{Annotations, CallPlan, Profile, Resolved, Source};
///
/// let risk = |hints| {
///     let resolved = Resolved::from_single(hints, Source::Declared);
///     let plan = CallPlan::derive(&resolved, &Profile::standard());
///     RiskLevel::of(&resolved, &plan).get()
/// };
/// let read = Annotations::default().with_read_only(true);
/// assert_eq!(risk(read.clone().with_open_world(false)), 2);
/// assert_eq!(risk(read.with_open_world(true)), 6);
/// assert_eq!(risk(Annotations::default().with_destructive(true)), 88);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RiskLevel(u8);

impl RiskLevel {
    /// Rates the calls of a tool by its effective hints and its plan.
    #[must_use]
    pub fn of(resolved: &Resolved, plan: &CallPlan) -> Self {
        let band = Self::band(plan.effect);
        let hints = resolved.annotations();
        let points = reach(hints)
            + exposure(hints)
            + if hints.requires_confirmation == Some(true) {
                2
            } else {
                0
            }
            + effort(hints)
            + match plan.effect {
                Effect::ReadOnly => doubt(resolved, Field::ReadOnly),
                Effect::Idempotent => doubt(resolved, Field::Idempotent),
                Effect::Mutating => 0,
                Effect::Destructive => loss(resolved),
            };
        Self(band.start().saturating_add(points).min(*band.end()))
    }

    /// Returns the numbers the calls of an effect may have.
    #[must_use]
    pub const fn band(effect: Effect) -> RangeInclusive<u8> {
        match effect {
            Effect::ReadOnly => 0..=19,
            Effect::Idempotent => 20..=39,
            Effect::Mutating => 40..=69,
            Effect::Destructive => 70..=100,
        }
    }

    /// Returns the number, from 0 to 100.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How far a call reaches.
fn reach(hints: &Annotations) -> u8 {
    match hints.open_world_hint {
        Some(true) => 4,
        None => 2,
        Some(false) => 0,
    }
}

/// What is lost if the wrong person sees a result.
fn exposure(hints: &Annotations) -> u8 {
    match hints.security_level {
        Some(SecurityLevel::Restricted) => 5,
        Some(SecurityLevel::Internal) | None => 2,
        Some(SecurityLevel::Public) => 0,
    }
}

/// What is spent on a call.
fn effort(hints: &Annotations) -> u8 {
    let work = match hints.complexity {
        Some(Complexity::Complex) => 2,
        Some(Complexity::Medium) => 1,
        Some(Complexity::Simple) | None => 0,
    };
    let dearer_than = |limit: &f64| hints.cost_hint.is_some_and(|cost| cost > *limit);
    COSTS
        .iter()
        .map(|limit| u8::from(dearer_than(limit)))
        .sum::<u8>()
        + work
}

/// A harmless call is less sure of it where nobody stated it.
fn doubt(resolved: &Resolved, field: Field) -> u8 {
    let stated = resolved
        .provenance(field)
        .is_some_and(|entry| entry.source > Source::Inferred);
    if stated { 0 } else { 2 }
}

/// What a destructive call leaves behind.
fn loss(resolved: &Resolved) -> u8 {
    let again = resolved.annotations().idempotent_hint != Some(true);
    let gone = resolved.takes_away();
    (if gone { 9 } else { 0 }) + (if again { 5 } else { 0 })
}
