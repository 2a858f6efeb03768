//! The invariants of any bytes that a server lists as a tool. The fuzzer includes this file.

use callward_core::infer::{Inference, Lexicon, Listed, Strength, Volatility};
use callward_core::resolve::{Hints, resolve};
use callward_core::{
    Annotations, AuditLevel, CacheRule, CallPlan, ConfirmRule, Effect, Field, Inferred, Profile,
    ReplicaSetId, Resolved, RetryRule, RuleSet, ServerId, Source, Subject, Tool, ToolDefinition,
    Trust,
};

const RULES: [RuleSet; 2] = [RuleSet::Standard, RuleSet::Neurolink];
const TRUST: [Trust; 3] = [Trust::Trusted, Trust::Standard, Trust::Untrusted];

/// Checks a listed tool from parsing to its plan, including every text. Returns `true` if the bytes
/// are a tool.
///
/// # Panics
///
/// If an invariant does not hold.
pub(crate) fn tool_json(bytes: &[u8]) -> bool {
    let definition = match ToolDefinition::from_json(bytes.to_vec()) {
        Ok(definition) => definition,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    assert_eq!(definition.raw, bytes, "a listing is kept byte for byte");
    hints(&definition.annotations);
    for server in [None, ServerId::new("acme").ok()] {
        let subject = Subject::of(&definition, server.as_ref());
        for rules in RULES {
            let alone = rules.infer(&subject);
            assert_eq!(alone, rules.infer(&subject), "the same tool, twice");
            for inferred in [alone, among_others(subject, &definition.annotations, rules)] {
                conclusions(&inferred, rules);
                let verdicts = TRUST.map(|trust| {
                    let all = Hints::new(&inferred, &definition.annotations, trust);
                    (trust, resolve(&all))
                });
                for (trust, resolved) in &verdicts {
                    verdict(resolved, &inferred, *trust);
                }
                plans(&verdicts);
            }
        }
    }
    digest(&definition);
    true
}

/// What is concluded of the tool beside others of its server, which declare what it may not.
fn among_others(subject: Subject<'_>, declared: &Annotations, rules: RuleSet) -> Inferred {
    let stays = Annotations::default().with_open_world(false);
    let adds = stays
        .clone()
        .with_destructive(false)
        .with_idempotent(true)
        .with_read_only(false);
    let listed = [
        (subject, declared),
        (Subject::new("get_user"), &stays),
        (Subject::new("update_user"), &adds),
        (Subject::new("update_order"), &adds),
        (Subject::new("update_group"), &adds),
        (Subject::new("delete_user"), &adds),
    ];
    let listed = listed.map(|(subject, declared)| Listed { subject, declared });
    let lexicon = Lexicon::standard();
    let inference = Inference { rules, lexicon };
    let all = inference.infer_all(&listed);
    assert_eq!(all.len(), listed.len());
    assert_eq!(all, inference.infer_all(&listed), "the same tools, twice");
    all.into_iter().next().unwrap()
}

/// What a server declares is checked and shown, and is the same after a round trip.
fn hints(declared: &Annotations) {
    for problem in declared.validate() {
        let text = problem.to_string();
        let named = text.contains(problem.field().as_str());
        // a tag is named by its place
        assert!(named || text.starts_with("tag "), "{text}");
    }
    assert!(declared.to_string().starts_with('['));
    let text = serde_json::to_string(declared).unwrap();
    let again: Annotations = serde_json::from_str(&text).unwrap();
    assert_eq!(&again, declared, "{text}");
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}

/// Each conclusion has its evidence, and no evidence is without a conclusion.
fn conclusions(inferred: &Inferred, rules: RuleSet) {
    let hints = &inferred.annotations;
    let concluded = serde_json::to_value(hints).unwrap();
    let fields: Vec<&String> = concluded.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), inferred.evidence.len(), "{inferred:?}");
    for evidence in &inferred.evidence {
        let field = evidence.field.to_string();
        assert!(fields.contains(&&field), "{field} of {inferred:?}");
        assert!(!evidence.to_string().is_empty());
    }
    if rules == RuleSet::Standard {
        assert!(!reads_and_destroys(hints), "{inferred:?}");
    }
}

/// The effective hints agree with each other, each has its source, and none relaxes without reason.
fn verdict(resolved: &Resolved, inferred: &Inferred, trust: Trust) {
    let out = &resolved.annotations;
    assert!(!reads_and_destroys(out), "{resolved:?}");
    assert!(out.to_string().starts_with('['));
    assert!(resolved.warnings.iter().all(|text| !text.is_empty()));
    for entry in &resolved.provenance {
        assert!(!entry.reason.is_empty() && !resolved.why(entry.field).is_empty());
        let first = resolved.provenance_of(entry.field);
        assert_eq!(first, Some(entry), "said twice");
    }
    for (field, relaxed) in [
        (Field::ReadOnly, out.read_only_hint == Some(true)),
        (Field::Destructive, out.destructive_hint == Some(false)),
        (Field::Idempotent, out.idempotent_hint == Some(true)),
        (Field::OpenWorld, out.open_world_hint == Some(false)),
    ] {
        let source = resolved.provenance_of(field).map(|entry| entry.source);
        if relaxed && source == Some(Source::Inferred) {
            let strength = inferred.evidence_for(field).map(|one| one.strength);
            assert_eq!(strength, Some(Strength::Strong), "{field} of {resolved:?}");
        }
        if relaxed && trust == Trust::Untrusted {
            panic!("{field} relaxed without a source: {resolved:?}");
        }
    }
}

/// Under each profile, a plan agrees with its effect; and the less a server is believed, the
/// stricter it is. Where nothing is believed, it is not a laxer than if nothing were known.
fn plans(verdicts: &[(Trust, Resolved); 3]) {
    let (nothing, silence) = (Inferred::default(), Annotations::default());
    let unknown = resolve(&Hints::new(&nothing, &silence, Trust::Untrusted));
    for name in Profile::NAMES {
        let profile = Profile::by_name(name).unwrap();
        let plan = |(_, resolved): &(_, _)| CallPlan::derive(resolved, &profile);
        let all = verdicts.each_ref().map(plan);
        for (plan, (_, resolved)) in all.iter().zip(verdicts) {
            consistent(plan, &profile);
            let volatility = resolved.volatile.as_ref().map(|found| found.volatility);
            let is_cursor = volatility == Some(Volatility::Cursor);
            assert!(!is_cursor || !plan.is_retryable(), "{plan}");
        }
        let [trusted, standard, untrusted] = all;
        let base = CallPlan::derive(&unknown, &profile);
        for (ours, base) in [
            (&standard, &trusted),
            (&untrusted, &standard),
            (&untrusted, &base),
        ] {
            let laxer = laxity(ours).into_iter().zip(laxity(base));
            for (ours_is, base_is) in laxer {
                let is_laxer = ours_is > base_is;
                assert!(!is_laxer, "{name}: {ours}\nis laxer than\n{base}");
            }
        }
    }
}

/// What a plan says in its parts follows from its effect.
fn consistent(plan: &CallPlan, profile: &Profile) {
    let text = plan.to_string();
    for part in ["effect", "route", "cache", "retry", "confirm", "limits"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let kept = matches!(
        plan.cache,
        CacheRule::Store { .. } | CacheRule::KeepOwn { .. }
    );
    let changes = matches!(plan.effect, Effect::Mutating | Effect::Destructive);
    assert!(!(kept && changes), "{text}");
    if changes && plan.is_retryable() {
        assert!(profile.retry_destructive_idempotent, "{text}");
    }
    if plan.effect == Effect::Destructive {
        assert_eq!(plan.confirm, ConfirmRule::Ask, "{text}");
        assert_eq!(plan.route.min_weight, Some(profile.primary_weight));
    }
    assert!(!plan.limits.attempt_timeout.is_zero() && !plan.limits.first_backoff.is_zero());
    let rate = plan.limits.calls_per_minute;
    assert!(rate.is_none_or(|rate| rate.is_finite() && rate > 0.0));
}

/// The digest depends on the definition and on nothing else.
fn digest(definition: &ToolDefinition) {
    let of = || {
        let resolved = Resolved::from_single(definition.annotations.clone(), Source::Declared);
        let plan = CallPlan::derive(&resolved, &Profile::standard());
        let set = ReplicaSetId::new("acme").unwrap();
        Tool::new(set, definition.clone(), resolved, plan).digest()
    };
    assert_eq!(of(), of());
}

fn reads_and_destroys(hints: &Annotations) -> bool {
    hints.read_only_hint == Some(true) && hints.destructive_hint == Some(true)
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
        match plan.retry {
            RetryRule::Safe => 2,
            RetryRule::OnlyUnsent => 1,
            _ => 0,
        },
        u8::from(plan.route.min_weight.is_none()),
        match plan.audit.level {
            AuditLevel::None => 2,
            AuditLevel::Partial => 1,
            _ => 0,
        },
    ]
}
