//! The rule of precedence and trust, as one pure function.

use std::collections::BTreeMap;

use serde_json::Value;

use super::slot::{
    AUDIT, CONFIRMATION, DESTRUCTIVE, Flag, IDEMPOTENT, OPEN_WORLD, READ_ONLY, Slot, replace,
    replace_or_tighten,
};
use super::{Field, Observation, Provenance, Resolved, Source, Trust};
use crate::annotations::unite;
use crate::infer::{Inferred, Strength};
use crate::{Annotations, SecurityLevel, ToolOverlay};

/// All hints about one tool, and how far its server is trusted.
#[must_use]
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "these are the sources")]
pub struct Hints<'a> {
    /// Inferred from name and description; the default value without inference.
    pub inferred: &'a Inferred,
    /// Configured for all tools of the server.
    pub server_defaults: Option<&'a Annotations>,
    /// Declared by the server for the tool.
    pub declared: &'a Annotations,
    /// Observed while the tool ran; each makes one hint stricter.
    pub observed: &'a [Observation],
    /// Set by plugins of discovery: hints that are stricter count, and tags.
    pub overlays: &'a [ToolOverlay],
    /// Set by the operator for the tool.
    pub operator: Option<&'a Annotations>,
    /// How far `inferred` and `declared` are trusted.
    pub trust: Trust,
}

impl<'a> Hints<'a> {
    /// Starts with the hints of the server alone.
    pub const fn new(inferred: &'a Inferred, declared: &'a Annotations, trust: Trust) -> Self {
        Self {
            inferred,
            server_defaults: None,
            declared,
            observed: &[],
            overlays: &[],
            operator: None,
            trust,
        }
    }

    /// Returns what is stated, from the weakest source to the strongest.
    pub(super) const fn stated(&self) -> [(Option<&'a Annotations>, Source); 3] {
        [
            (self.server_defaults, Source::ServerDefault),
            (Some(self.declared), Source::Declared),
            (self.operator, Source::Operator),
        ]
    }
}

/// Weighs all sources. See the [module](mod@crate::resolve) for the rule.
///
/// ```
/// use callward_core::infer::{RuleSet, Subject};
/// use callward_core::resolve::{Hints, Trust, resolve};
/// use callward_core::{Annotations, CallPlan, Effect, Profile};
///
/// let inferred = RuleSet::Standard.infer(&Subject::new("delete_user"));
/// let declared = Annotations::default().with_read_only(true);
/// let resolved = resolve(&Hints::new(&inferred, &declared, Trust::Standard));
/// let plan = CallPlan::derive(&resolved, &Profile::standard());
/// assert_eq!(plan.effect, Effect::Destructive);
/// println!("{}", resolved.warnings[0]);
/// ```
pub fn resolve(hints: &Hints<'_>) -> Resolved {
    let mut effect = EffectHints::settle(hints);
    effect.heed_contrary_evidence(hints);
    effect.agree();
    effect.drop_unfounded_idempotence(hints);
    if hints.trust == Trust::Untrusted {
        effect.assume_the_worst();
    }
    let takes_away = effect.takes_away(hints);
    let mut warnings = effect.warnings;
    let confirm = CONFIRMATION.settle(hints, &mut warnings);
    let audit = AUDIT.settle(hints, &mut warnings);
    let level = replace_or_tighten(hints, Field::SecurityLevel, |h| h.security_level, narrower);
    let rate = replace_or_tighten(hints, Field::RateLimitHint, |h| h.rate_limit_hint, slower);
    let cost = replace_or_tighten(hints, Field::CostHint, |h| h.cost_hint, dearer);
    let duration = replace(hints, Field::EstimatedDuration, |h| h.estimated_duration);

    let mut kept = Kept::default();
    let out = Annotations {
        title: kept.put(replace(hints, Field::Title, |h| h.title.clone())),
        read_only_hint: kept.put(effect.read_only),
        destructive_hint: kept.put(effect.destructive),
        idempotent_hint: kept.put(effect.idempotent),
        open_world_hint: kept.put(effect.open_world),
        requires_confirmation: kept.put(confirm),
        tags: kept.put(tags(hints)),
        estimated_duration: kept.put(duration),
        rate_limit_hint: kept.put(rate),
        cost_hint: kept.put(cost),
        complexity: kept.put(replace(hints, Field::Complexity, |h| h.complexity)),
        audit_required: kept.put(audit),
        security_level: kept.put(level),
        vendor: vendor(hints),
    };
    Resolved {
        annotations: out,
        provenance: kept.0,
        warnings,
        takes_away,
        volatile: hints.inferred.volatile.clone(),
    }
}

/// The four hints that decide the effect, which must agree with each other.
struct EffectHints {
    read_only: Option<Slot<bool>>,
    destructive: Option<Slot<bool>>,
    idempotent: Option<Slot<bool>>,
    open_world: Option<Slot<bool>>,
    warnings: Vec<String>,
}

impl EffectHints {
    fn settle(hints: &Hints<'_>) -> Self {
        let mut warnings = Vec::new();
        Self {
            read_only: READ_ONLY.settle(hints, &mut warnings),
            destructive: DESTRUCTIVE.settle(hints, &mut warnings),
            idempotent: IDEMPOTENT.settle(hints, &mut warnings),
            open_world: OPEN_WORLD.settle(hints, &mut warnings),
            warnings,
        }
    }

    /// Strong evidence of destruction contradicts a declared read-only as well. Server defaults
    /// that state read-only are configuration, and stay.
    fn heed_contrary_evidence(&mut self, hints: &Hints<'_>) {
        let is_declared = |slot: &Slot<bool>| slot.value && slot.from.source == Source::Declared;
        let declared = self.read_only.as_ref().is_some_and(is_declared);
        let configured = hints.server_defaults.and_then(|h| h.read_only_hint) == Some(true);
        if hints.trust != Trust::Standard || !declared || configured {
            return;
        }
        if let Some(slot) = Slot::inferred(hints, Field::Destructive, DESTRUCTIVE.of)
            && slot.value
            && slot.from.strength == Some(Strength::Strong)
        {
            self.warnings.push(format!(
                "the server declares {} true, but {}: read as false",
                Field::ReadOnly,
                slot.from.reason
            ));
            self.read_only = Some(slot.denies_reading());
        }
    }

    /// A tool is not both read-only and destructive: the stronger source wins, and the stricter
    /// hint of equal sources.
    fn agree(&mut self) {
        let (Some(reads), Some(destroys)) = (&mut self.read_only, &self.destructive) else {
            return;
        };
        if !reads.value || !destroys.value {
            return;
        }
        if destroys.from.source < reads.from.source {
            self.destructive = None;
        } else {
            self.warnings.push(format!(
                "read-only ({}) and destructive ({}) at once: read as destructive",
                reads.from.source, destroys.from.source
            ));
            *reads = destroys.clone().denies_reading();
        }
    }

    /// A claim of idempotence is dropped if the tool turns out not to be read-only and its source
    /// also claims that it is: the hint means nothing on a read-only tool, and many servers set it
    /// on every read.
    fn drop_unfounded_idempotence(&mut self, hints: &Hints<'_>) {
        let is_true = |slot: &Option<Slot<bool>>| slot.as_ref().is_some_and(|slot| slot.value);
        if is_true(&self.read_only) || !is_true(&self.idempotent) {
            return;
        }
        let rests_on_reading = |said: &Annotations| {
            said.read_only_hint == Some(true) && said.idempotent_hint == Some(true)
        };
        let (inferred, declared) = (Inferred::default(), Annotations::default());
        let mut founded = *hints;
        if rests_on_reading(&hints.inferred.annotations) {
            founded.inferred = &inferred;
        }
        founded.server_defaults = hints.server_defaults.filter(|said| !rests_on_reading(said));
        if rests_on_reading(hints.declared) {
            founded.declared = &declared;
        }
        // contradictions were reported when the hints were settled
        self.idempotent = IDEMPOTENT.settle(&founded, &mut Vec::new());
    }

    /// The conclusion that a tool only overwrites is laxer, so it needs a trusted server.
    fn takes_away(&self, hints: &Hints<'_>) -> bool {
        let evidence = hints.inferred.evidence_for(Field::Destructive);
        let only_overwrites = |slot: &Slot<bool>| {
            slot.from.source == Source::Inferred
                && hints.trust != Trust::Untrusted
                && evidence.is_some_and(|evidence| !evidence.takes_away())
        };
        let destroys = self.destructive.as_ref();
        destroys.is_some_and(|slot| slot.value && !only_overwrites(slot))
    }

    /// Fills absent hints with the defaults of the MCP specification.
    fn assume_the_worst(&mut self) {
        let assumed = |flag: Flag| Slot::stated(flag.strict, flag.field, Source::Assumed);
        let reads = self.read_only.get_or_insert_with(|| assumed(READ_ONLY));
        if !reads.value {
            self.destructive.get_or_insert_with(|| assumed(DESTRUCTIVE));
            self.idempotent.get_or_insert_with(|| assumed(IDEMPOTENT));
        }
        self.open_world.get_or_insert_with(|| assumed(OPEN_WORLD));
    }
}

impl Slot<bool> {
    /// Turns what says that a tool destroys into what says that it does not only read.
    fn denies_reading(mut self) -> Self {
        self.value = false;
        self.from.field = Field::ReadOnly;
        self
    }
}

/// Unites the tags of all sources; the strongest source with tags is named.
fn tags(hints: &Hints<'_>) -> Option<Slot<Vec<String>>> {
    let mut united: Option<Slot<Vec<String>>> = None;
    let inferred = (Some(&hints.inferred.annotations), Source::Inferred);
    let [defaults, declared, operator] = hints.stated();
    let overlays = hints.overlays.iter();
    let overlays = overlays.map(|overlay| (Some(&overlay.hints), Source::Plugin));
    let sets = [inferred, defaults, declared].into_iter().chain(overlays);
    for (set, source) in sets.chain([operator]) {
        if let Some(tags) = set.and_then(|set| set.tags.as_deref()) {
            let before = united.as_ref().map(|slot| slot.value.as_slice());
            if let Some(value) = unite(before, Some(tags)) {
                united = Some(Slot::stated(value, Field::Tags, source));
            }
        }
    }
    united
}

/// Merges unknown fields, key by key.
fn vendor(hints: &Hints<'_>) -> BTreeMap<String, Value> {
    let sets = hints.stated().into_iter().filter_map(|(set, _)| set);
    sets.flat_map(|set| set.vendor.clone()).collect()
}

/// An absent level records nothing, as `public` does; each higher level requires more.
fn narrower(level: &SecurityLevel, base: Option<&SecurityLevel>) -> bool {
    level > base.unwrap_or(&SecurityLevel::Public)
}

/// An invalid rate would lift the limit.
fn slower(rate: &f64, base: Option<&f64>) -> bool {
    rate.is_finite() && *rate > 0.0 && base.is_none_or(|base| rate < base)
}

/// An invalid cost would fit any budget.
fn dearer(cost: &f64, base: Option<&f64>) -> bool {
    cost.is_finite() && *cost >= 0.0 && base.is_none_or(|base| cost > base)
}

/// The sources of the fields written so far.
#[derive(Default)]
struct Kept(Vec<Provenance>);

impl Kept {
    fn put<T>(&mut self, slot: Option<Slot<T>>) -> Option<T> {
        let Slot { value, from } = slot?;
        self.0.push(from);
        Some(value)
    }
}
