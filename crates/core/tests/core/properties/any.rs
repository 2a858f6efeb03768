//! Any hints, any conclusions, any profile.

use callward_core::infer::{RuleSet, Subject};
use callward_core::{
    Annotations, CacheRule, CallPlan, Complexity, ConfirmRule, Inferred, Profile, RetryRule,
    SecurityLevel, Trust,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any set of hints that JSON can say: all thirteen fields, and fields that are not ours.
pub(crate) fn hints() -> impl Strategy<Value = Annotations> {
    let flag = || prop::option::of(any::<bool>());
    let number = || prop::option::of(number());
    let complexity = prop::sample::select(Complexity::ALL);
    let level = prop::sample::select(SecurityLevel::ALL);
    let flags = (flag(), flag(), flag(), flag(), flag(), flag());
    let words = (
        prop::option::of("\\PC{0,6}"),
        prop::option::of(prop::collection::vec("[a-d ]{0,2}", 0..4)),
        prop::collection::btree_map("x-[a-c]", value(), 0..3),
    );
    let rest = (
        number(),
        number(),
        number(),
        prop::option::of(complexity),
        prop::option::of(level),
    );
    (flags, words, rest).prop_map(|(flags, (title, tags, vendor), rest)| {
        let mut hints = Annotations::default();
        hints.title = title;
        hints.read_only_hint = flags.0;
        hints.destructive_hint = flags.1;
        hints.idempotent_hint = flags.2;
        hints.open_world_hint = flags.3;
        hints.requires_confirmation = flags.4;
        hints.tags = tags;
        hints.estimated_duration = rest.0;
        hints.rate_limit_hint = rest.1;
        hints.cost_hint = rest.2;
        hints.complexity = rest.3;
        hints.audit_required = flags.5;
        hints.security_level = rest.4;
        hints.vendor = vendor;
        hints
    })
}

/// Any number JSON can say: likely ones, odd ones, and all others.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (0_u16..1000).prop_map(f64::from),
        -10.0..200.0,
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO,
    ]
}

/// A value of a field that is not ours.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        number().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        ("\\PC{0,3}", any::<bool>()).prop_map(|(key, flag)| json!({ key: [flag, null] })),
    ]
}

const WORDS: &[&str] = &[
    "get", "delete", "create", "set", "send", "log", "and", "or", "user", "sql", "query", "next",
    "update", "list", "archive", "the", "not", "file", "url", "random",
];

/// What either rule set concludes of a tool with these words.
pub(crate) fn inferred() -> impl Strategy<Value = Inferred> {
    let text = |most| prop::collection::vec(prop::sample::select(WORDS), 0..most);
    let rules = prop::sample::select(RuleSet::ALL);
    (text(4), text(8), rules).prop_map(|(name, description, rules)| {
        let (name, description) = (name.join("_"), description.join(" "));
        rules.infer(&Subject {
            description: Some(&description),
            ..Subject::new(&name)
        })
    })
}

pub(crate) fn trust() -> impl Strategy<Value = Trust> {
    prop::sample::select(Trust::ALL)
}

/// Every profile there is, and one with every switch turned the lax way.
pub(crate) fn profiles() -> Vec<Profile> {
    let mut bold = Profile::by_name("mcpgate").unwrap();
    bold.name = "bold";
    bold.retry_destructive_idempotent = true;
    bold.idempotent_ttl = Some(std::time::Duration::from_secs(5));
    let presets = Profile::NAMES
        .iter()
        .flat_map(|name| Profile::by_name(name));
    presets.chain([bold]).collect()
}

/// How lax a plan is, dimension by dimension: more is laxer.
pub(crate) fn laxity(plan: &CallPlan) -> [f64; 9] {
    let flag = |lax: bool| f64::from(u8::from(lax));
    [
        -f64::from(plan.effect as u8),
        flag(plan.confirm == ConfirmRule::Skip),
        match plan.cache {
            CacheRule::Store { .. } => 2.0,
            CacheRule::KeepOwn { .. } => 1.0,
            _ => 0.0,
        },
        match plan.retry {
            RetryRule::Safe => 2.0,
            RetryRule::OnlyUnsent => 1.0,
            _ => 0.0,
        },
        flag(plan.route.min_weight.is_none()),
        -f64::from(plan.audit.level as u8),
        plan.limits.calls_per_minute.unwrap_or(f64::INFINITY),
        flag(!plan.limits.restricted),
        -plan.route.cost.unwrap_or(0.0),
    ]
}
