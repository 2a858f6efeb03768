//! Precedence, trust, and the rule that untrusted metadata never makes a call laxer.

use proptest::prelude::*;
use tollgate_core::infer::{RuleSet, Subject};
use tollgate_core::resolve::{Hints, resolve};
use tollgate_core::{
    Annotations, AuditLevel, CacheRule, CallPlan, ConfirmRule, Effect, Field, Inferred, Profile,
    RepeatRule, Resolved, SecurityLevel, Source, Trust,
};

fn hints() -> Annotations {
    Annotations::default()
}

/// What becomes of a tool that says nothing but its name and `declared`.
fn named(name: &str, declared: &Annotations, trust: Trust) -> Resolved {
    let inferred = RuleSet::Standard.infer(&Subject::new(name));
    resolve(&Hints::new(&inferred, declared, trust))
}

fn effect(resolved: &Resolved) -> Effect {
    CallPlan::derive(resolved, &Profile::standard()).effect
}

#[test]
fn a_stronger_source_replaces_a_weaker_one() {
    let inferred = RuleSet::Standard.infer(&Subject::new("get_user"));
    let defaults = hints()
        .with_read_only(false)
        .with_tags(["b", "a"])
        .with_cost(1.0);
    let declared = hints()
        .with_read_only(true)
        .with_tags(["c", "a"])
        .with_title("T");
    let operator = hints()
        .with_read_only(false)
        .with_tags(["d"])
        .with_vendor("x", 1);
    let of_server =
        Hints::new(&inferred, &declared, Trust::Trusted).with_server_defaults(&defaults);
    let resolved = resolve(&of_server.with_operator(&operator));
    let out = resolved.annotations();
    assert_eq!(out.read_only_hint, Some(false));
    assert_eq!(out.tags.clone().unwrap_or_default(), ["b", "a", "c", "d"]);
    assert_eq!(out.cost_hint, Some(1.0));
    assert_eq!(out.title.as_deref(), Some("T"));
    assert!(out.vendor.contains_key("x"));
    let source = |field| resolved.provenance(field).map(|entry| entry.source);
    assert_eq!(source(Field::ReadOnly), Some(Source::Operator));
    assert_eq!(source(Field::CostHint), Some(Source::ServerDefault));
    assert_eq!(source(Field::Title), Some(Source::Declared));
    assert_eq!(source(Field::Complexity), None);
}

#[test]
fn inference_fills_gaps_and_says_why() {
    let resolved = named("get_user", &hints(), Trust::Standard);
    assert_eq!(effect(&resolved), Effect::ReadOnly);
    assert_eq!(
        resolved.why(Field::ReadOnly),
        "inferred, the name leads with `get`"
    );
    assert_eq!(
        effect(&named("unlock_account", &hints(), Trust::Standard)),
        Effect::Idempotent
    );
    assert_eq!(
        effect(&named("create_order", &hints(), Trust::Standard)),
        Effect::Mutating
    );
    assert_eq!(
        effect(&named("set_limit", &hints(), Trust::Standard)),
        Effect::Destructive
    );
}

#[test]
fn a_declaration_takes_back_what_weak_evidence_tightened() {
    let harmless = hints().with_idempotent(true).with_destructive(false);
    for name in ["set_limit", "update_user", "send_mail"] {
        let resolved = named(name, &harmless, Trust::Standard);
        assert_eq!(effect(&resolved), Effect::Idempotent, "{name}");
        assert_eq!(resolved.warnings(), [""; 0], "{name}");
    }
    // Idempotence alone says nothing about what is overwritten.
    let repeats = hints().with_idempotent(true);
    let resolved = named("set_limit", &repeats, Trust::Standard);
    assert_eq!(effect(&resolved), Effect::Destructive);
}

#[test]
fn weak_evidence_tightens_and_never_relaxes() {
    let weak_read = named("user_get", &hints(), Trust::Trusted);
    assert_eq!(effect(&weak_read), Effect::Mutating);
    let weak_loss = named("log_delete", &hints(), Trust::Trusted);
    assert_eq!(effect(&weak_loss), Effect::Destructive);
}

#[test]
fn strong_contrary_evidence_counts_on_a_standard_server_only() {
    let declared = hints().with_read_only(true).with_idempotent(true);
    let standard = named("delete_user", &declared, Trust::Standard);
    assert_eq!(effect(&standard), Effect::Destructive);
    assert_eq!(
        standard.warnings(),
        ["the server declares readOnlyHint true, but the name leads with `delete`: read as false"]
    );
    let trusted = named("delete_user", &declared, Trust::Trusted);
    assert_eq!(effect(&trusted), Effect::ReadOnly);
    assert_eq!(trusted.warnings(), [""; 0]);
    // Weak evidence does not contradict anybody.
    let weak = named("log_delete", &declared, Trust::Standard);
    assert_eq!(effect(&weak), Effect::ReadOnly);
}

#[test]
fn a_contradicted_server_is_not_believed_about_repeats_either() {
    let declared = hints()
        .with_read_only(true)
        .with_idempotent(true)
        .with_destructive(false);
    let created = named("create_order", &declared, Trust::Standard);
    assert_eq!(effect(&created), Effect::Mutating);
}

#[test]
fn a_declared_loss_is_not_taken_back_by_the_name() {
    let resolved = named(
        "get_and_forget",
        &hints().with_destructive(true),
        Trust::Standard,
    );
    assert_eq!(effect(&resolved), Effect::Destructive);
    let named_read = named("get_next", &hints().with_destructive(true), Trust::Standard);
    assert_eq!(effect(&named_read), Effect::Destructive);
}

#[test]
fn one_source_that_says_both_is_read_as_destructive() {
    let both = hints().with_read_only(true).with_destructive(true);
    let resolved = named("get_user", &both, Trust::Trusted);
    assert_eq!(effect(&resolved), Effect::Destructive);
    assert_eq!(resolved.annotations().read_only_hint, Some(false));
    assert_eq!(
        resolved.warnings(),
        ["read-only (declared) and destructive (declared) at once: read as destructive"]
    );
}

#[test]
fn idempotence_concluded_from_reading_falls_with_it() {
    let declared = hints().with_read_only(false);
    let resolved = named("get_next_job", &declared, Trust::Trusted);
    assert_eq!(resolved.annotations().idempotent_hint, None);
    assert_eq!(effect(&resolved), Effect::Mutating);
}

#[test]
fn destructive_means_nothing_where_a_stronger_source_says_read_only() {
    let inferred = RuleSet::Standard.infer(&Subject::new("delete_preview"));
    let declared = hints().with_destructive(true);
    let operator = hints().with_read_only(true);
    let resolved =
        resolve(&Hints::new(&inferred, &declared, Trust::Standard).with_operator(&operator));
    assert_eq!(effect(&resolved), Effect::ReadOnly);
    assert_eq!(resolved.annotations().destructive_hint, None);
}

#[test]
fn configured_defaults_outweigh_the_name() {
    let inferred = RuleSet::Standard.infer(&Subject::new("delete_draft"));
    let defaults = hints().with_read_only(true);
    let declared = hints().with_read_only(true);
    let resolved =
        resolve(&Hints::new(&inferred, &declared, Trust::Standard).with_server_defaults(&defaults));
    assert_eq!(effect(&resolved), Effect::ReadOnly);
    assert_eq!(resolved.warnings(), [""; 0]);
}

#[test]
fn neurolinks_double_verdict_is_read_as_destructive() {
    let inferred = RuleSet::Neurolink.infer(&Subject::new("getAndDelete").with_description(""));
    let nothing = hints();
    let resolved = resolve(&Hints::new(&inferred, &nothing, Trust::Standard));
    assert_eq!(effect(&resolved), Effect::Destructive);
    let declared = hints().with_read_only(true);
    let resolved = resolve(&Hints::new(&inferred, &declared, Trust::Standard));
    assert_eq!(effect(&resolved), Effect::Destructive);
    assert_eq!(resolved.warnings().len(), 1);
}

#[test]
fn silence_of_an_untrusted_server_is_read_as_the_worst() {
    let resolved = named("get_user", &hints().with_read_only(true), Trust::Untrusted);
    let out = resolved.annotations();
    assert_eq!(out.read_only_hint, Some(false));
    assert_eq!(out.destructive_hint, Some(true));
    assert_eq!(out.idempotent_hint, Some(false));
    assert_eq!(out.open_world_hint, Some(true));
    assert_eq!(
        resolved
            .provenance(Field::ReadOnly)
            .map(|entry| entry.source),
        Some(Source::Assumed)
    );
    let inferred = Inferred::default();
    let declared = hints();
    let operator = hints().with_read_only(true);
    let told =
        resolve(&Hints::new(&inferred, &declared, Trust::Untrusted).with_operator(&operator));
    assert_eq!(effect(&told), Effect::ReadOnly);
}

#[test]
fn an_untrusted_server_may_only_narrow_and_slow_down() {
    let inferred = Inferred::default();
    let defaults = hints()
        .with_rate_limit(60.0)
        .with_security_level(SecurityLevel::Internal)
        .with_audit_required(true)
        .with_requires_confirmation(true);
    let rate = |declared: f64| {
        let declared = hints().with_rate_limit(declared);
        let all =
            Hints::new(&inferred, &declared, Trust::Untrusted).with_server_defaults(&defaults);
        resolve(&all).annotations().rate_limit_hint
    };
    for (declared, effective) in [(10.0, 10.0), (600.0, 60.0), (0.0, 60.0), (-1.0, 60.0)] {
        assert_eq!(rate(declared), Some(effective));
    }
    assert_eq!(rate(f64::NAN), Some(60.0));
    let level = |declared| {
        let declared = hints()
            .with_security_level(declared)
            .with_audit_required(false)
            .with_requires_confirmation(false);
        let all =
            Hints::new(&inferred, &declared, Trust::Untrusted).with_server_defaults(&defaults);
        let out = resolve(&all).annotations().clone();
        assert_eq!(out.audit_required, Some(true));
        assert_eq!(out.requires_confirmation, Some(true));
        out.security_level
    };
    assert_eq!(level(SecurityLevel::Public), Some(SecurityLevel::Internal));
    assert_eq!(
        level(SecurityLevel::Restricted),
        Some(SecurityLevel::Restricted)
    );
}

fn any_hints() -> impl Strategy<Value = Annotations> {
    let flag = || prop::option::of(any::<bool>());
    (
        flag(),
        flag(),
        flag(),
        flag(),
        flag(),
        prop::option::of(-10.0..100.0),
    )
        .prop_map(|(read, destructive, idempotent, open, confirm, number)| {
            let mut out = hints();
            out.read_only_hint = read;
            out.destructive_hint = destructive;
            out.idempotent_hint = idempotent;
            out.open_world_hint = open;
            out.requires_confirmation = confirm;
            out.rate_limit_hint = number;
            out.cost_hint = number;
            out
        })
}

fn any_inferred() -> impl Strategy<Value = Inferred> {
    const WORDS: &[&str] = &[
        "get", "delete", "create", "set", "send", "log", "and", "user", "sql", "query",
    ];
    let text = |most| prop::collection::vec(prop::sample::select(WORDS), 0..most);
    let text = move |most| text(most).prop_map(|words| words.join(" "));
    (text(4), text(8), any::<bool>()).prop_map(|(name, description, ours)| {
        let rules = if ours {
            RuleSet::Standard
        } else {
            RuleSet::Neurolink
        };
        rules.infer(&Subject::new(&name).with_description(&description))
    })
}

/// Every profile there is, and one with every switch turned the lax way.
fn profiles() -> Vec<Profile> {
    let mut bold = Profile::mcpgate();
    bold.name = "bold";
    bold.repeat_destructive_idempotent = true;
    bold.idempotent_ttl = Some(std::time::Duration::from_secs(5));
    let mut all = Profile::all().to_vec();
    all.push(bold);
    all
}

/// How lax a plan is, dimension by dimension: more is laxer.
fn laxity(plan: &CallPlan) -> [u8; 6] {
    [
        match plan.effect {
            Effect::ReadOnly => 3,
            Effect::Idempotent => 2,
            Effect::Mutating => 1,
            Effect::Destructive => 0,
        },
        match plan.confirm {
            ConfirmRule::Skip => 1,
            _ => 0,
        },
        match plan.cache {
            CacheRule::Store { .. } => 2,
            CacheRule::KeepOwn { .. } => 1,
            _ => 0,
        },
        match plan.repeat {
            RepeatRule::Safe => 2,
            RepeatRule::OnlyUnsent => 1,
            _ => 0,
        },
        u8::from(plan.route.min_weight.is_none()),
        match plan.audit {
            AuditLevel::None => 2,
            AuditLevel::Record => 1,
            _ => 0,
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn untrusted_metadata_never_makes_a_plan_laxer(
        inferred in any_inferred(),
        declared in any_hints(),
        defaults in prop::option::of(any_hints()),
        operator in prop::option::of(any_hints()),
    ) {
        let (nothing_inferred, nothing) = (Inferred::default(), hints());
        let mut without = Hints::new(&nothing_inferred, &nothing, Trust::Untrusted);
        without.server_defaults = defaults.as_ref();
        without.operator = operator.as_ref();
        let mut with = without;
        with.inferred = &inferred;
        with.declared = &declared;
        let (without, with) = (resolve(&without), resolve(&with));
        for profile in profiles() {
            let base = laxity(&CallPlan::derive(&without, &profile));
            let ours = laxity(&CallPlan::derive(&with, &profile));
            for (ours, base) in ours.into_iter().zip(base) {
                prop_assert!(ours <= base, "{}: {:?}", profile.name, with);
            }
        }
    }

    #[test]
    fn the_operator_always_wins(
        inferred in any_inferred(),
        declared in any_hints(),
        operator in any_hints(),
        trust in prop::sample::select(vec![Trust::Trusted, Trust::Standard, Trust::Untrusted]),
    ) {
        let resolved = resolve(&Hints::new(&inferred, &declared, trust).with_operator(&operator));
        let out = resolved.annotations();
        let both = operator.read_only_hint == Some(true) && operator.destructive_hint == Some(true);
        if operator.read_only_hint.is_some() && operator.destructive_hint.is_some() && !both {
            prop_assert_eq!(out.read_only_hint, operator.read_only_hint);
            prop_assert_eq!(out.destructive_hint, operator.destructive_hint);
        }
        if operator.idempotent_hint.is_some() {
            prop_assert_eq!(out.idempotent_hint, operator.idempotent_hint);
        }
        if operator.open_world_hint.is_some() {
            prop_assert_eq!(out.open_world_hint, operator.open_world_hint);
        }
        prop_assert!(out.read_only_hint != Some(true) || out.destructive_hint != Some(true));
    }

    #[test]
    fn every_effective_field_has_its_source(
        inferred in any_inferred(),
        declared in any_hints(),
        trust in prop::sample::select(vec![Trust::Trusted, Trust::Standard, Trust::Untrusted]),
    ) {
        let resolved = resolve(&Hints::new(&inferred, &declared, trust));
        let written = serde_json::to_value(resolved.annotations()).unwrap_or_default();
        let mut fields: Vec<&str> =
            resolved.all_provenance().iter().map(|entry| entry.field.as_str()).collect();
        fields.sort_unstable();
        let keys: Vec<&str> =
            written.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        prop_assert_eq!(fields, keys);
    }
}
