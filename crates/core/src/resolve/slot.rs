//! One field on its way to a verdict.

use std::borrow::Cow;

use super::resolved::says;
use super::{Field, Hints, Source, Trust};
use crate::Annotations;
use crate::infer::Strength;

/// A value, who gave it and why.
#[derive(Debug, Clone)]
pub(super) struct Slot<T> {
    pub(super) value: T,
    pub(super) source: Source,
    pub(super) reason: Cow<'static, str>,
    /// The strength of an inferred value.
    pub(super) strength: Option<Strength>,
}

impl<T> Slot<T> {
    pub(super) fn stated(value: T, source: Source) -> Self {
        Self {
            value,
            source,
            reason: says(source).into(),
            strength: None,
        }
    }
}

/// A yes-or-no hint: where it is found, and which answer is the stricter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag {
    pub(super) field: Field,
    pub(super) of: fn(&Annotations) -> Option<bool>,
    pub(super) strict: bool,
}

pub(super) const READ_ONLY: Flag = Flag {
    field: Field::ReadOnly,
    of: |hints| hints.read_only_hint,
    strict: false,
};
pub(super) const DESTRUCTIVE: Flag = Flag {
    field: Field::Destructive,
    of: |hints| hints.destructive_hint,
    strict: true,
};
pub(super) const IDEMPOTENT: Flag = Flag {
    field: Field::Idempotent,
    of: |hints| hints.idempotent_hint,
    strict: false,
};
pub(super) const OPEN_WORLD: Flag = Flag {
    field: Field::OpenWorld,
    of: |hints| hints.open_world_hint,
    strict: true,
};
pub(super) const CONFIRMATION: Flag = Flag {
    field: Field::RequiresConfirmation,
    of: |hints| hints.requires_confirmation,
    strict: true,
};
pub(super) const AUDIT: Flag = Flag {
    field: Field::AuditRequired,
    of: |hints| hints.audit_required,
    strict: true,
};

impl Flag {
    /// Lays the sources over each other.
    pub(super) fn settle(
        self,
        hints: &Hints<'_>,
        warnings: &mut Vec<String>,
    ) -> Option<Slot<bool>> {
        let Self { field, of, strict } = self;
        let may_relax = hints.trust != Trust::Untrusted;
        let inferred = self.inferred(hints);
        let contrary = inferred
            .as_ref()
            .is_some_and(|(slot, strength)| slot.value == strict && *strength == Strength::Strong);
        let mut slot = inferred
            .filter(|(slot, strength)| {
                slot.value == strict || (may_relax && *strength == Strength::Strong)
            })
            .map(|(slot, _)| slot);
        if let Some(value) = hints.server_defaults.and_then(of) {
            slot = Some(Slot::stated(value, Source::ServerDefault));
        }
        if let Some(value) = of(hints.declared) {
            let relaxes = value != strict;
            let agreed = slot.as_ref().is_some_and(|slot| slot.value == value);
            match hints.trust {
                Trust::Untrusted if relaxes => {}
                Trust::Standard if relaxes && contrary && !agreed => {
                    if let Some(slot) = &slot {
                        warnings.push(format!(
                            "the server declares {field} {value}, but {}: read as {strict}",
                            slot.reason
                        ));
                    }
                }
                Trust::Trusted | Trust::Standard | Trust::Untrusted => {
                    slot = Some(Slot::stated(value, Source::Declared));
                }
            }
        }
        // Observation is a fact, but it can only show harm, never its absence.
        if let Some(value) = hints.observed.and_then(of).filter(|value| *value == strict) {
            slot = Some(Slot::stated(value, Source::Observed));
        }
        if let Some(value) = hints.operator.and_then(of) {
            slot = Some(Slot::stated(value, Source::Operator));
        }
        slot
    }

    /// Returns what was inferred, and how firmly.
    pub(super) fn inferred(self, hints: &Hints<'_>) -> Option<(Slot<bool>, Strength)> {
        let value = (self.of)(hints.inferred.annotations())?;
        let evidence = hints.inferred.evidence(self.field)?;
        let slot = Slot {
            value,
            source: Source::Inferred,
            reason: evidence.reason(),
            strength: Some(evidence.strength()),
        };
        Some((slot, evidence.strength()))
    }
}

/// Lays the sources over each other for a field that neither tightens nor relaxes.
pub(super) fn replace<T>(
    hints: &Hints<'_>,
    field: Field,
    of: impl Fn(&Annotations) -> Option<T>,
) -> Option<Slot<T>> {
    let stated = |hints: Option<&Annotations>, source| {
        hints.and_then(&of).map(|value| Slot::stated(value, source))
    };
    stated(hints.operator, Source::Operator)
        .or_else(|| stated(Some(hints.declared), Source::Declared))
        .or_else(|| stated(hints.server_defaults, Source::ServerDefault))
        .or_else(|| {
            let evidence = hints.inferred.evidence(field)?;
            Some(Slot {
                value: of(hints.inferred.annotations())?,
                source: Source::Inferred,
                reason: evidence.reason(),
                strength: Some(evidence.strength()),
            })
        })
}

/// As [`replace`], for a field of which more is stricter: what an untrusted server declares counts
/// only if `stricter` says so of it and what would stand without it.
pub(super) fn replace_or_tighten<T>(
    hints: &Hints<'_>,
    field: Field,
    of: impl Fn(&Annotations) -> Option<T>,
    stricter: impl Fn(&T, Option<&T>) -> bool,
) -> Option<Slot<T>> {
    if hints.trust != Trust::Untrusted {
        return replace(hints, field, of);
    }
    let nothing = Annotations::default();
    let base = replace(
        &Hints {
            declared: &nothing,
            ..*hints
        },
        field,
        &of,
    );
    if base
        .as_ref()
        .is_some_and(|base| base.source == Source::Operator)
    {
        return base;
    }
    match of(hints.declared) {
        Some(value) if stricter(&value, base.as_ref().map(|base| &base.value)) => {
            Some(Slot::stated(value, Source::Declared))
        }
        _ => base,
    }
}
