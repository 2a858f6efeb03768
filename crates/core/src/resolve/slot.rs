//! One field while its sources are merged.

use super::{Field, Hints, Observation, Provenance, Source, Trust};
use crate::Annotations;
use crate::infer::Strength;

/// A value with its source and reason.
#[derive(Debug, Clone)]
pub(super) struct Slot<T> {
    pub(super) value: T,
    pub(super) from: Provenance,
}

impl<T> Slot<T> {
    pub(super) fn stated(value: T, field: Field, source: Source) -> Self {
        let from = Provenance::stated(field, source);
        Self { value, from }
    }

    pub(super) fn inferred(
        hints: &Hints<'_>,
        field: Field,
        of: impl Fn(&Annotations) -> Option<T>,
    ) -> Option<Self> {
        let evidence = hints.inferred.evidence_for(field)?;
        Some(Self {
            value: of(&hints.inferred.annotations)?,
            from: Provenance {
                field,
                source: Source::Inferred,
                reason: evidence.to_string().into(),
                strength: Some(evidence.strength),
            },
        })
    }
}

/// A boolean hint: where it is found, and which value is stricter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag {
    pub(super) field: Field,
    pub(super) of: fn(&Annotations) -> Option<bool>,
    pub(super) strict: bool,
}

pub(super) const READ_ONLY: Flag = Flag::new(Field::ReadOnly, |h| h.read_only_hint, false);
pub(super) const DESTRUCTIVE: Flag = Flag::new(Field::Destructive, |h| h.destructive_hint, true);
pub(super) const IDEMPOTENT: Flag = Flag::new(Field::Idempotent, |h| h.idempotent_hint, false);
pub(super) const OPEN_WORLD: Flag = Flag::new(Field::OpenWorld, |h| h.open_world_hint, true);
pub(super) const CONFIRMATION: Flag = Flag::new(
    Field::RequiresConfirmation,
    |h| h.requires_confirmation,
    true,
);
pub(super) const AUDIT: Flag = Flag::new(Field::AuditRequired, |h| h.audit_required, true);

impl Flag {
    const fn new(field: Field, of: fn(&Annotations) -> Option<bool>, strict: bool) -> Self {
        Self { field, of, strict }
    }

    /// Merges the sources.
    pub(super) fn settle(
        self,
        hints: &Hints<'_>,
        warnings: &mut Vec<String>,
    ) -> Option<Slot<bool>> {
        let Self { field, of, strict } = self;
        let may_relax = hints.trust != Trust::Untrusted;
        let inferred = Slot::inferred(hints, field, of);
        let is_strong = |slot: &Slot<bool>| slot.from.strength == Some(Strength::Strong);
        let contrary =
            (inferred.as_ref()).is_some_and(|slot| slot.value == strict && is_strong(slot));
        let mut slot =
            inferred.filter(|slot| slot.value == strict || (may_relax && is_strong(slot)));
        if let Some(value) = hints.server_defaults.and_then(of) {
            slot = Some(Slot::stated(value, field, Source::ServerDefault));
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
                            slot.from.reason
                        ));
                    }
                }
                Trust::Trusted | Trust::Standard | Trust::Untrusted => {
                    slot = Some(Slot::stated(value, field, Source::Declared));
                }
            }
        }
        // Observation is a fact, but it can only show harm, never its absence.
        let shows_it = |seen: &&Observation| seen.field == field;
        if let Some(seen) = hints.observed.iter().find(shows_it) {
            let mut observed = Slot::stated(strict, field, Source::Observed);
            observed.from.reason = seen.reason.clone().into();
            slot = Some(observed);
        }
        let mut overlays = hints.overlays.iter();
        if overlays.any(|it| of(&it.hints) == Some(strict)) {
            slot = Some(Slot::stated(strict, field, Source::Plugin));
        }
        if let Some(value) = hints.operator.and_then(of) {
            slot = Some(Slot::stated(value, field, Source::Operator));
        }
        slot
    }
}

/// Merges the sources of a field that is neither stricter nor laxer.
pub(super) fn replace<T>(
    hints: &Hints<'_>,
    field: Field,
    of: impl Fn(&Annotations) -> Option<T>,
) -> Option<Slot<T>> {
    let stated = hints.stated().into_iter().rev();
    let mut stated =
        stated.filter_map(|(set, source)| Some(Slot::stated(of(set?)?, field, source)));
    stated.next().or_else(|| Slot::inferred(hints, field, of))
}

/// As [`replace`], for a field whose larger values are stricter: the values of an untrusted server
/// and of plugins count only if `stricter` returns `true` for them and the value of the other
/// sources.
pub(super) fn replace_or_tighten<T>(
    hints: &Hints<'_>,
    field: Field,
    of: impl Fn(&Annotations) -> Option<T>,
    stricter: impl Fn(&T, Option<&T>) -> bool,
) -> Option<Slot<T>> {
    let nothing = Annotations::default();
    let (declared, claimed) = match hints.trust {
        Trust::Untrusted => (&nothing, Some((hints.declared, Source::Declared))),
        _ => (hints.declared, None),
    };
    let mut slot = replace(&Hints { declared, ..*hints }, field, &of);
    let overlays = hints.overlays.iter().map(|it| (&it.hints, Source::Plugin));
    for (said, source) in claimed.into_iter().chain(overlays) {
        let known = slot.as_ref();
        let is_set = known.is_some_and(|base| base.from.source == Source::Operator);
        if let Some(value) = of(said)
            && !is_set
            && stricter(&value, known.map(|base| &base.value))
        {
            slot = Some(Slot::stated(value, field, source));
        }
    }
    slot
}
