//! Hints tighten freely and relax only with a reason.

use callward_core::infer::Strength;
use callward_core::resolve::{Hints, resolve};
use callward_core::{
    Annotations, CallPlan, Field, Inferred, Observation, Source, ToolOverlay, Trust,
};
use proptest::prelude::*;

use crate::properties::any;
use crate::properties::any::laxity;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn untrusted_metadata_never_makes_a_plan_laxer(
        inferred in any::inferred(),
        declared in any::hints(),
        defaults in prop::option::of(any::hints()),
        operator in prop::option::of(any::hints()),
    ) {
        let (nothing_inferred, nothing) = (Inferred::default(), Annotations::default());
        let mut without = Hints::new(&nothing_inferred, &nothing, Trust::Untrusted);
        without.server_defaults = defaults.as_ref();
        without.operator = operator.as_ref();
        let mut with = without;
        with.inferred = &inferred;
        with.declared = &declared;
        let (without, with) = (resolve(&without), resolve(&with));
        for profile in any::profiles() {
            let base = laxity(&CallPlan::derive(&without, &profile));
            let ours = laxity(&CallPlan::derive(&with, &profile));
            for (ours, base) in ours.into_iter().zip(base) {
                prop_assert!(ours <= base, "{}: {:?}", profile.name, with);
            }
        }
    }

    #[test]
    fn what_is_observed_never_makes_a_plan_laxer(
        inferred in any::inferred(),
        declared in any::hints(),
        defaults in prop::option::of(any::hints()),
        operator in prop::option::of(any::hints()),
        trust in any::trust(),
        fields in prop::sample::subsequence(Field::ALL, 0..=Field::ALL.len()),
    ) {
        let mut without = Hints::new(&inferred, &declared, trust);
        without.server_defaults = defaults.as_ref();
        without.operator = operator.as_ref();
        let seen = |field| Observation { field, reason: "seen".into() };
        let seen: Vec<_> = fields.into_iter().map(seen).collect();
        let with = resolve(&Hints { observed: &seen, ..without });
        let without = resolve(&without);
        for profile in any::profiles() {
            let base = laxity(&CallPlan::derive(&without, &profile));
            let ours = laxity(&CallPlan::derive(&with, &profile));
            for (ours, base) in ours.into_iter().zip(base) {
                prop_assert!(ours <= base, "{}: {:?}, not {:?}", profile.name, with, without);
            }
        }
    }

    #[test]
    fn what_a_plugin_sets_never_makes_a_plan_laxer(
        inferred in any::inferred(),
        declared in any::hints(),
        defaults in prop::option::of(any::hints()),
        operator in prop::option::of(any::hints()),
        trust in any::trust(),
        plugins in prop::collection::vec(any::hints(), 1..4),
    ) {
        let plugins = plugins.into_iter().map(|hints| {
            let mut overlay = ToolOverlay::default();
            overlay.hints = hints;
            overlay
        });
        let plugins: Vec<_> = plugins.collect();
        let mut without = Hints::new(&inferred, &declared, trust);
        without.server_defaults = defaults.as_ref();
        without.operator = operator.as_ref();
        // nor does one plugin undo what those before it set
        for (before, plugin) in (0..plugins.len()).zip(1..) {
            let plans = |overlays| resolve(&Hints { overlays, ..without });
            let (base, ours) = (plans(&plugins[..before]), plans(&plugins[..plugin]));
            for profile in any::profiles() {
                let was = laxity(&CallPlan::derive(&base, &profile));
                let is = laxity(&CallPlan::derive(&ours, &profile));
                for (is, was) in is.into_iter().zip(was) {
                    prop_assert!(is <= was, "{}: {:?}, not {:?}", profile.name, ours, base);
                }
            }
            for (field, value) in serde_json::to_value(operator.clone().unwrap_or_default())
                .unwrap()
                .as_object()
                .unwrap()
            {
                let is_settled = ["requiresConfirmation", "securityLevel", "rateLimitHint"];
                if is_settled.contains(&&**field) {
                    let found = serde_json::to_value(&ours.annotations).unwrap();
                    prop_assert_eq!(&found[field], value, "the operator's {}", field);
                }
            }
        }
    }

    #[test]
    fn a_server_is_never_believed_more_for_being_trusted_less(
        inferred in any::inferred(),
        declared in any::hints(),
    ) {
        let plans = |trust| {
            let resolved = resolve(&Hints::new(&inferred, &declared, trust));
            any::profiles().into_iter().map(move |profile| {
                (profile.name, laxity(&CallPlan::derive(&resolved, &profile)))
            })
        };
        for (less, more) in [
            (Trust::Standard, Trust::Trusted),
            (Trust::Untrusted, Trust::Standard),
        ] {
            for ((profile, ours), (_, base)) in plans(less).zip(plans(more)) {
                // Rate and cost are not among them: an odd one (0, or below) lifts the limit where
                // the server is believed, and nothing else where it is not.
                let pairs = ours
                    .into_iter()
                    .zip(base)
                    .enumerate()
                    .filter(|(at, _)| ![6, 8].contains(at));
                for (at, (ours, base)) in pairs {
                    prop_assert!(ours <= base, "{} dimension {}: {:?}", profile, at, less);
                }
            }
        }
    }

    #[test]
    fn nothing_relaxes_on_weak_evidence(
        inferred in any::inferred(),
        declared in any::hints(),
        trust in any::trust(),
    ) {
        let resolved = resolve(&Hints::new(&inferred, &declared, trust));
        let effective = serde_json::to_value(&resolved.annotations).unwrap();
        for (field, relaxed) in [
            (Field::ReadOnly, true),
            (Field::Destructive, false),
            (Field::Idempotent, true),
            (Field::OpenWorld, false),
            (Field::RequiresConfirmation, false),
        ] {
            let entry = resolved.provenance_of(field);
            let concluded = entry.is_some_and(|entry| entry.source == Source::Inferred);
            if concluded && effective[field.as_str()] == relaxed {
                let strength = inferred.evidence_for(field).map(|evidence| evidence.strength);
                prop_assert_eq!(strength, Some(Strength::Strong), "{}", field);
                prop_assert_ne!(trust, Trust::Untrusted, "{}", field);
            }
        }
    }

    #[test]
    fn nothing_reads_only_and_destroys(
        inferred in any::inferred(),
        declared in any::hints(),
        defaults in any::hints(),
        operator in any::hints(),
        trust in any::trust(),
    ) {
        let out = resolve(&Hints {
            server_defaults: Some(&defaults),
            operator: Some(&operator),
            ..Hints::new(&inferred, &declared, trust)
        });
        let out = &out.annotations;
        prop_assert!(out.read_only_hint != Some(true) || out.destructive_hint != Some(true));
    }

    #[test]
    fn every_effective_field_has_its_source(
        inferred in any::inferred(),
        declared in any::hints(),
        defaults in any::hints(),
        trust in any::trust(),
    ) {
        let server_defaults = Some(&defaults);
        let all = Hints { server_defaults, ..Hints::new(&inferred, &declared, trust) };
        let resolved = resolve(&all);
        let mut ours = resolved.annotations.clone();
        ours.vendor.clear();
        let written = serde_json::to_value(ours).unwrap();
        let mut fields: Vec<&str> =
            resolved.provenance.iter().map(|entry| entry.field.as_str()).collect();
        fields.sort_unstable();
        let keys: Vec<&str> =
            written.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        prop_assert_eq!(fields, keys);
    }
}
