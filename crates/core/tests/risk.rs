//! The risk level keeps to its bands, and no stricter hint lowers it.

use callward_core::activity::{RiskLevel, SafetyGroup};
use callward_core::infer::{RuleSet, Subject};
use callward_core::resolve::{Hints, resolve};
use callward_core::{
    Annotations, CallPlan, Complexity, Effect, Inferred, Profile, Resolved, SecurityLevel, Source,
    Trust,
};
use proptest::prelude::*;

const EFFECTS: [Effect; 4] = [
    Effect::ReadOnly,
    Effect::Idempotent,
    Effect::Mutating,
    Effect::Destructive,
];

/// Each hint as a step on its ladder, from the laxest to the strictest.
type Steps = [usize; 8];

const LENGTHS: Steps = [3, 3, 3, 3, 4, 3, 4, 5];

fn hints(steps: Steps) -> Annotations {
    let [read, loses, again, open, level, asks, work, cost] = steps;
    let laxest_true = |step| [Some(true), None, Some(false)][step];
    let laxest_false = |step| [Some(false), None, Some(true)][step];
    let mut out = Annotations::default();
    out.read_only_hint = laxest_true(read);
    out.destructive_hint = laxest_false(loses);
    out.idempotent_hint = laxest_true(again);
    out.open_world_hint = laxest_false(open);
    out.security_level = [
        Some(SecurityLevel::Public),
        None,
        Some(SecurityLevel::Internal),
        Some(SecurityLevel::Restricted),
    ][level];
    out.requires_confirmation = laxest_false(asks);
    out.complexity = [
        None,
        Some(Complexity::Simple),
        Some(Complexity::Medium),
        Some(Complexity::Complex),
    ][work];
    out.cost_hint = [Some(f64::NAN), None, Some(1.0), Some(50.0), Some(1e9)][cost];
    out
}

fn any_steps() -> impl Strategy<Value = Steps> {
    any::<[u8; 8]>().prop_map(|bytes| {
        let mut steps = LENGTHS;
        for (step, byte) in steps.iter_mut().zip(bytes) {
            *step = usize::from(byte) % *step;
        }
        steps
    })
}

fn any_source() -> impl Strategy<Value = Source> {
    prop::sample::select(vec![Source::Inferred, Source::Declared, Source::Operator])
}

fn rate(resolved: &Resolved, profile: &Profile) -> (Effect, u8) {
    let plan = CallPlan::derive(resolved, profile);
    (plan.effect, RiskLevel::of(resolved, &plan).get())
}

#[test]
fn bands_follow_each_other_from_0_to_100() {
    let mut next = 0;
    for effect in EFFECTS {
        let band = RiskLevel::band(effect);
        assert_eq!(*band.start(), next, "{effect}");
        assert!(band.start() < band.end(), "{effect}");
        next = band.end() + 1;
    }
    assert_eq!(next, 101);
}

#[test]
fn the_scale_is_used_from_end_to_end() {
    let risk = |steps| {
        rate(
            &Resolved::from_single(hints(steps), Source::Operator),
            &Profile::standard(),
        )
        .1
    };
    assert_eq!(risk([0; 8]), 0);
    assert_eq!(risk(LENGTHS.map(|length| length - 1)), 100);
}

#[test]
fn what_takes_away_is_riskier_than_what_overwrites() {
    let risk = |name: &str| {
        let inferred = RuleSet::Standard.infer(&Subject::new(name));
        let nothing = Annotations::default();
        let resolved = resolve(&Hints::new(&inferred, &nothing, Trust::Standard));
        rate(&resolved, &Profile::standard())
    };
    let (overwrites, deletes) = (risk("update_order"), risk("delete_order"));
    assert_eq!(overwrites.0, Effect::Destructive);
    assert_eq!(deletes.0, Effect::Destructive);
    assert!(overwrites.1 < deletes.1, "{overwrites:?} {deletes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn a_level_is_in_the_band_of_its_effect(steps in any_steps(), source in any_source()) {
        let resolved = Resolved::from_single(hints(steps), source);
        for profile in Profile::all() {
            let (effect, level) = rate(&resolved, &profile);
            prop_assert!(RiskLevel::band(effect).contains(&level), "{}: {level}", profile.name);
            let outside = EFFECTS.into_iter().filter(|other| *other != effect);
            for other in outside {
                prop_assert!(!RiskLevel::band(other).contains(&level), "{}: {level}", profile.name);
            }
        }
    }

    #[test]
    fn a_stricter_hint_never_lowers_the_level(
        steps in any_steps(),
        at in 0_usize..8,
        source in any_source(),
    ) {
        let mut stricter = steps;
        stricter[at] = (steps[at] + 1).min(LENGTHS[at] - 1);
        let (lax, strict) = (
            Resolved::from_single(hints(steps), source),
            Resolved::from_single(hints(stricter), source),
        );
        for profile in Profile::all() {
            let (before, after) = (rate(&lax, &profile), rate(&strict, &profile));
            prop_assert!(before.1 <= after.1, "{}: {before:?} {after:?}", profile.name);
        }
    }

    #[test]
    fn untrusted_metadata_never_moves_a_tool_to_a_safer_group(
        steps in any_steps(),
        configured in prop::option::of(any_steps()),
        name in prop::sample::select(vec!["get_user", "update_user", "delete_user", "x"]),
    ) {
        let (nothing_inferred, nothing) = (Inferred::default(), Annotations::default());
        let configured = configured.map(hints);
        let mut without = Hints::new(&nothing_inferred, &nothing, Trust::Untrusted);
        without.server_defaults = configured.as_ref();
        let inferred = RuleSet::Standard.infer(&Subject::new(name));
        let declared = hints(steps);
        let mut with = without;
        with.inferred = &inferred;
        with.declared = &declared;
        for profile in Profile::all() {
            let base = rate(&resolve(&without), &profile);
            let ours = rate(&resolve(&with), &profile);
            prop_assert!(SafetyGroup::of(base.0) <= SafetyGroup::of(ours.0), "{}", profile.name);
            prop_assert!(RiskLevel::band(base.0).start() <= &ours.1, "{}", profile.name);
        }
    }
}
