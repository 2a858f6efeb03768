//! Plans in sentences.

use std::fmt;
use std::time::Duration;

use callward_cache::{Partition, StateGroup};
use callward_core::refine::{Applied, RefinedRule};
use callward_core::{
    AuditLevel, CacheRule, CallPlan, ConfirmRule, Effect, Field, FingerprintKey, Lifetime,
    ReplicaSetId, Source,
};
use callward_router::StrategyName;

use super::{Candidate, Explanation, guards};
use crate::learned::LearnedLifetime;

/// Says everything that the plan decides, each decision in a sentence or two.
pub(super) fn sentences(of: &Explanation) -> Vec<String> {
    [
        Some(effect(of)),
        rule(of),
        Some(route(of)),
        Some(cache(of)),
        Some(guards::retry(of)),
        guards::verify(of),
        guards::hedge(of),
        guards::loops(of),
        Some(guards::breaker(of)),
        Some(confirm(of.plan())),
        Some(guards::time(of)),
        guards::rates(of),
        kept(of.plan()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Lists the tool's rules, if it has any, and what each makes of a call.
pub(super) fn rules(of: &Explanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let refinements = of.tool().refinements();
    if refinements.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "\nrules over the arguments, the first that matches counts:"
    )?;
    for (index, rule) in refinements.rules().iter().enumerate() {
        let (when, does) = (rule.rule().when(), does(rule.plan().effect));
        write!(f, "  {}. where {when}: the call {does}", index + 1)?;
        match (of.applied(), of.call()) {
            (Applied::Rule(matched), _) if matched == index => write!(f, "  <- this call")?,
            (Applied::Rule(matched), _) if matched < index => {}
            (_, Some(call)) => {
                if let Some(unmet) = refinements.unmet(index, call.arguments()) {
                    let how = match unmet.is_certain {
                        true => "does not hold here",
                        false => "is not certain here",
                    };
                    write!(f, "  ({} {}: {how})", unmet.path, unmet.condition)?;
                }
            }
            (_, None) => {}
        }
        writeln!(f)?;
    }
    let mark = match (of.call(), of.applied()) {
        (Some(_), Applied::Tool) => "  <- this call",
        _ => "",
    };
    let own = does(of.tool().plan().effect);
    writeln!(f, "  else: the call {own}{mark}")
}

/// Says what a call does, as the rest of a sentence.
const fn does(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "only reads",
        Effect::Idempotent => "changes something, and a second equal call changes nothing more",
        Effect::Mutating => "changes something each time it runs",
        Effect::Destructive => "may destroy or overwrite something",
    }
}

/// The rule whose own hint decided the effect, with its number from 1.
fn deciding_rule(of: &Explanation) -> Option<(usize, &RefinedRule)> {
    let Applied::Rule(index) = of.applied() else {
        return None;
    };
    let rule = of.tool().refinements().rules().get(index)?;
    let said = rule.rule().hints();
    let decides = match of.plan().effect {
        Effect::ReadOnly => said.read_only_hint,
        Effect::Idempotent => said.idempotent_hint,
        Effect::Destructive => said.destructive_hint,
        Effect::Mutating => None,
    };
    decides.is_some().then_some((index + 1, rule))
}

fn effect(of: &Explanation) -> String {
    let subject = match (of.call(), of.tool().refinements().is_empty()) {
        (Some(_), _) => "This call",
        (None, true) => "A call of this tool",
        (None, false) => "A call of this tool that no rule matches",
    };
    format!(
        "{subject} {}, because {}.",
        does(of.plan().effect),
        because(of)
    )
}

/// Says whose word decided the effect.
fn because(of: &Explanation) -> String {
    let (plan, resolved) = (of.plan(), of.resolved());
    let hints = resolved.annotations();
    let (field, hint) = match plan.effect {
        Effect::ReadOnly => (Field::ReadOnly, hints.read_only_hint),
        Effect::Idempotent => (Field::Idempotent, hints.idempotent_hint),
        Effect::Destructive => (Field::Destructive, hints.destructive_hint),
        // no hint says so: it is what is left
        Effect::Mutating => return plan.reason.clone().into_owned(),
    };
    // a profile may have its own idea, and the strictest of several plans rests on no hint
    let is_said = hint == Some(true) && !matches!(of.applied(), Applied::Strictest(_));
    let Some(decided) = resolved.provenance(field).filter(|_| is_said) else {
        return plan.reason.clone().into_owned();
    };
    if let Some((number, rule)) = deciding_rule(of) {
        let when = rule.rule().when();
        return format!("rule {number} of this tool says so where {when}");
    }
    let reason = &decided.reason;
    match decided.source {
        Source::Operator => "the operator says so of this tool".into(),
        Source::ServerDefault => "the operator says so of all tools of the server".into(),
        Source::Declared => "its server says so".into(),
        Source::Inferred => format!("its name and description tell so: {reason}"),
        Source::Assumed => {
            "nobody who is believed says otherwise, and then the worst is assumed".into()
        }
        other => format!("of {other}: {reason}"),
    }
}

/// Says which rule matched, where the sentence before did not.
fn rule(of: &Explanation) -> Option<String> {
    let rules = of.tool().refinements().rules();
    of.call()?;
    let number = match rules.len() {
        0 => return None,
        1 => "The one rule of this tool does not match it".to_owned(),
        several => format!("None of this tool's {several} rules matches it"),
    };
    Some(match of.applied() {
        Applied::Tool => format!("{number}, so the tool's own plan stands."),
        Applied::Rule(_) if deciding_rule(of).is_some() => return None,
        Applied::Rule(index) => {
            let when = rules.get(index)?.rule().when();
            format!("Rule {} of this tool matches it: {when}.", index + 1)
        }
        Applied::Strictest(doubt) => format!(
            "No rule is taken at its word: {}.",
            of.tool().refinements().describe(doubt)
        ),
        _ => return None,
    })
}

fn route(of: &Explanation) -> String {
    let plan = of.plan();
    let (may, never): (Vec<_>, Vec<_>) = of
        .candidates()
        .iter()
        .partition(|candidate| candidate.may_take(plan));
    let fit = may
        .iter()
        .filter(|candidate| candidate.trouble().is_none())
        .count();
    let mut out = match plan.route.min_weight {
        Some(weight) => format!("Only healthy servers of weight {weight} or more may get it"),
        None => "Any healthy server may get it".to_owned(),
    };
    if may.is_empty() {
        out.push_str(", and there is none: it is refused");
    } else {
        out.push_str(": ");
        out.push_str(&list(&may));
    }
    out.push('.');
    if !never.is_empty() {
        out.push_str(&format!(" Never: {}.", list(&never)));
    }
    if fit == 0 && !may.is_empty() {
        out.push_str(match plan.route.min_weight {
            Some(_) => " None of them is healthy now, so it would be refused.",
            None => " None of them is healthy now; it would be tried all the same.",
        });
    }
    for category in &plan.route.prefer {
        let is_in = |candidate: &&Candidate| candidate.categories.iter().any(|own| own == category);
        if may.iter().copied().any(|candidate| is_in(&candidate)) {
            out.push_str(&format!(" Those of category `{category}` come first."));
        }
    }
    if fit > 1 {
        out.push_str(match of.strategy() {
            StrategyName::PeakEwma => {
                " Among equals, two are drawn by weight, and the one that is expected to answer \
                 sooner gets it."
            }
            StrategyName::LeastConnections => {
                " Among equals, the one with the fewest calls in flight for its weight gets it."
            }
            StrategyName::RoundRobin => " Equals take turns.",
            StrategyName::Weighted => " Equals take turns in proportion to their weights.",
            _ => "",
        });
    }
    if may.len() > 1 {
        out.push_str(&now(of).unwrap_or_default());
    }
    out
}

/// Says who would get it now, and who would be asked next.
fn now(of: &Explanation) -> Option<String> {
    let decision = of.route()?;
    let mut out = format!(" Sent now, it would go to {}", decision.chosen.as_ref()?);
    if !decision.alternates.is_empty() {
        let next: Vec<_> = decision
            .alternates
            .iter()
            .map(ToString::to_string)
            .collect();
        out.push_str(&format!(
            ", and if that refuses to {}",
            next.join(", then ")
        ));
    }
    out.push('.');
    Some(out)
}

fn list(candidates: &[&Candidate]) -> String {
    let one = |candidate: &&Candidate| match candidate.trouble() {
        Some(trouble) => format!(
            "{} (weight {}; {trouble})",
            candidate.server, candidate.weight
        ),
        None => format!("{} (weight {})", candidate.server, candidate.weight),
    };
    candidates.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn cache(of: &Explanation) -> String {
    let (plan, config, set) = (of.plan(), &of.settings.cache, of.tool().set());
    if !config.enabled {
        return "Nothing is kept: the cache is off.".into();
    }
    let drops = drops(of);
    let state = state(config.scopes.state(set), set);
    let until = match of.reads() {
        None => format!("a tool writes to {state}"),
        Some(scopes) if scopes.is_empty() => {
            format!("a tool without `writes` writes to {state}")
        }
        Some(scopes) => format!(
            "a tool writes to {}, or one without `writes` to {state}",
            words(&scopes)
        ),
    };
    let lookup = matches!(plan.cache, CacheRule::Store { .. })
        || (matches!(plan.cache, CacheRule::KeepOwn { .. }) && config.idempotent_writes);
    let unclear = of
        .call()
        .filter(|_| lookup)
        .and_then(|call| FingerprintKey::fixed().json(call.arguments()).err());
    match (plan.cache, unclear) {
        (CacheRule::Store { .. }, Some(why)) => format!(
            "Its result is neither looked up nor kept, because no other call is certainly the same: \
             in its arguments, {why}."
        ),
        (CacheRule::Store { ttl, lifetime }, None) => {
            let shared = config.partition == Partition::Shared && !plan.limits.restricted;
            let whose = if shared { "" } else { " of the same caller" };
            format!(
                "Its result is looked up in the cache first. A new one is kept for {}, for calls \
                 with the same arguments{whose}, until {until}.{}",
                how_long(ttl, lifetime),
                evidence(of).unwrap_or_default()
            )
        }
        (CacheRule::KeepOwn { ttl, lifetime }, None) if config.idempotent_writes => {
            let time = match lifetime {
                Lifetime::Learned(_) => format!("{} of other sessions", seconds(config.burst)),
                _ => seconds(ttl),
            };
            format!(
                "It is a write: {drops}. Its own result then answers equal calls for {time}, unless \
                 something else is written in between."
            )
        }
        (CacheRule::Bypass, _) => {
            let why = of
                .resolved()
                .volatility()
                .map_or_else(|| "it must be fresh".into(), |volatile| volatile.reason());
            format!("Its result is neither looked up nor kept: {why}.")
        }
        _ => format!("Its result is never kept, and it may be a write: {drops}."),
    }
}

/// Says what a write drops.
fn drops(of: &Explanation) -> String {
    let set = of.tool().set();
    let dropped = match of.writes() {
        None => {
            let state = state(of.settings.cache.scopes.state(set), set);
            format!("all kept results of {state} are dropped")
        }
        Some(scopes) if scopes.is_empty() => {
            return "nothing that is kept is dropped, as the operator says of this tool".into();
        }
        Some(scopes) => format!(
            "what was read from {} is dropped, with the results of tools of which nobody says what \
             they read",
            words(&scopes)
        ),
    };
    format!("{dropped} when it is sent, and again when it is answered")
}

/// Names the state that a replica set shares.
fn state(group: &StateGroup, set: &ReplicaSetId) -> String {
    match group {
        StateGroup::Own => format!("`{set}`"),
        StateGroup::Named(name) => format!("the state `{name}`"),
        _ => "any server of the shared state".to_owned(),
    }
}

/// Says what decides how long a result is served.
fn how_long(ttl: Duration, lifetime: Lifetime) -> String {
    let ttl = seconds(ttl);
    match lifetime {
        Lifetime::Learned(_) => format!("as long as evidence allows, {ttl} at most"),
        Lifetime::Stated => format!("{ttl}, as the operator states"),
        _ => ttl,
    }
}

/// Says what repeated calls of the tool showed.
fn evidence(of: &Explanation) -> Option<String> {
    let burst = of.settings.cache.burst;
    let learned = LearnedLifetime::new(of.plan(), of.evidence(), burst)?.to_string();
    let mut rest = learned.chars();
    let first = rest.next()?.to_ascii_uppercase();
    Some(format!(" {first}{}.", rest.as_str()))
}

/// Lists scopes within a sentence.
fn words(scopes: &[String]) -> String {
    let quoted: Vec<_> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
    quoted.join(", ")
}

fn confirm(plan: &CallPlan) -> String {
    match plan.confirm {
        ConfirmRule::Skip => "Nobody is asked first.".into(),
        _ => "A person is to agree before it is sent.".into(),
    }
}

/// Says who sees the result, and what is written down of the call.
fn kept(plan: &CallPlan) -> Option<String> {
    let mut out = Vec::new();
    if plan.limits.restricted {
        out.push("Its results are shown to nobody but the caller.");
    }
    match (plan.audit.level, plan.audit.open_world) {
        (AuditLevel::None, _) => {}
        (AuditLevel::Partial, false) => out
            .push("Each call is to leave an audit record: the tool, the time, how the call ended."),
        (AuditLevel::Partial, true) => out.push(
            "Each call is to leave an audit record among those of calls that reach outside: the \
             tool, the time, how the call ended.",
        ),
        (_, false) => out.push("Each call is to leave a full audit record."),
        (_, true) => out.push(
            "Each call is to leave a full audit record, among those of calls that reach outside.",
        ),
    }
    (!out.is_empty()).then(|| out.join(" "))
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
