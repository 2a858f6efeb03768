//! Precedence and trust, case by case. `properties` has what holds for any hints.

use callward_core::infer::{RuleSet, Subject};
use callward_core::resolve::{Hints, resolve};
use callward_core::{
    Annotations, CacheRule, CallPlan, Effect, Field, Inferred, Profile, Resolved, RetryRule,
    SecurityLevel, Source, Trust,
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
    let weak_read = named("get_or_init_user", &hints(), Trust::Trusted);
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
    // Weak evidence does not contradict a declared hint.
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
fn idempotence_claimed_of_a_read_falls_with_the_reading() {
    // many servers set both on every read; the second means nothing beside the first
    let claimed = hints().with_read_only(true).with_idempotent(true);
    let nothing = Inferred::default();
    let of_server = Hints::new(&nothing, &claimed, Trust::Trusted);
    let no_read = hints().with_read_only(false);
    for denied in [
        of_server.with_operator(&no_read),
        of_server.with_observed(&no_read),
    ] {
        let resolved = resolve(&denied);
        assert_eq!(resolved.annotations().idempotent_hint, None);
        assert_eq!(effect(&resolved), Effect::Mutating);
    }
    let destroys = hints().with_destructive(true);
    let destroyed = resolve(&of_server.with_operator(&destroys));
    let plan = CallPlan::derive(&destroyed, &Profile::epd());
    assert_eq!(plan.retry, RetryRule::Never);

    // the server's defaults claim it for tools they call reads; the tool says it is not a read
    let of_tool = Hints::new(&nothing, &no_read, Trust::Trusted).with_server_defaults(&claimed);
    assert_eq!(effect(&resolve(&of_tool)), Effect::Mutating);

    // said by itself, or by the operator, or concluded of the write, it stands
    let repeats = hints().with_idempotent(true);
    let of_tool = Hints::new(&nothing, &repeats, Trust::Trusted).with_server_defaults(&claimed);
    let by_itself = resolve(&of_tool.with_operator(&no_read));
    assert_eq!(effect(&by_itself), Effect::Idempotent);
    let operator = no_read.clone().with_idempotent(true);
    let by_operator = resolve(&of_server.with_operator(&operator));
    assert_eq!(effect(&by_operator), Effect::Idempotent);
    let unlock = RuleSet::Standard.infer(&Subject::new("unlock_account"));
    let concluded = Hints::new(&unlock, &claimed, Trust::Trusted).with_operator(&no_read);
    assert_eq!(effect(&resolve(&concluded)), Effect::Idempotent);
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
    let resolved =
        resolve(&Hints::new(&inferred, &declared, Trust::Untrusted).with_operator(&operator));
    assert_eq!(effect(&resolved), Effect::ReadOnly);
}

#[test]
fn what_was_seen_tightens_and_gives_way_to_the_operator_only() {
    let inferred = Inferred::default();
    let declared = hints().with_read_only(true).with_idempotent(true);
    let seen = hints().with_read_only(false).with_idempotent(false);
    let all = Hints::new(&inferred, &declared, Trust::Trusted).with_observed(&seen);
    let resolved = resolve(&all);
    assert_eq!(effect(&resolved), Effect::Mutating);
    assert_eq!(resolved.why(Field::ReadOnly), "observed, seen while it ran");
    let operator = hints().with_read_only(true);
    assert_eq!(
        effect(&resolve(&all.with_operator(&operator))),
        Effect::ReadOnly
    );
    // observation never shows the absence of harm
    let declared = hints().with_read_only(false).with_destructive(true);
    let seen = hints().with_read_only(true).with_destructive(false);
    let resolved = resolve(&Hints::new(&inferred, &declared, Trust::Trusted).with_observed(&seen));
    assert_eq!(effect(&resolved), Effect::Destructive);
}

#[test]
fn a_clock_is_never_cached_and_a_cursor_never_retried() {
    let declared = hints().with_read_only(true).with_idempotent(true);
    let rules = |name: &str, trust| {
        let plan = CallPlan::derive(&named(name, &declared, trust), &Profile::standard());
        (plan.effect, plan.cache, plan.retry)
    };
    for trust in [Trust::Standard, Trust::Trusted] {
        let clock = (Effect::ReadOnly, CacheRule::Bypass, RetryRule::Safe);
        assert_eq!(rules("get_current_time", trust), clock);
        assert_eq!(rules("dice", trust), clock);
        let cursor = (Effect::ReadOnly, CacheRule::Bypass, RetryRule::OnlyUnsent);
        assert_eq!(rules("next_page", trust), cursor);
    }
    // a write that repeats without harm keeps no result of the clock either
    let uuid = hints().with_idempotent(true).with_destructive(false);
    let plan = CallPlan::derive(&named("uuid", &uuid, Trust::Standard), &Profile::standard());
    assert_eq!(
        (plan.effect, plan.cache),
        (Effect::Idempotent, CacheRule::Invalidate)
    );
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
