//! Telling how a server was chosen, to those who want to know.
//!
//! Only then is anything of this made: a call without a record that wants it, in front of a router
//! nobody listens to, costs two looks. And telling changes no choice: turns stay as they are, and so
//! does what is drawn next at random.

use std::sync::Arc;

use callward_core::{RouteCandidate, RouteDecision, ServerId, ToolCall, ToolError};

use crate::choose::{Candidates, Choice, least};
use crate::endpoint::Endpoint;
use crate::events::{RouteEvent, RouteEvents};

/// Says whether anybody wants to know how a call's server is chosen.
pub(crate) fn is_wanted(events: &RouteEvents, call: &ToolCall) -> bool {
    events.is_heard() || call.record().is_some_and(|record| record.wants_decisions())
}

/// Tells that a server gets the call.
pub(crate) fn chosen<S>(candidates: &Candidates<S>, call: &ToolCall, choice: Choice) {
    let Some(endpoint) = candidates.set().endpoints().get(choice.place) else {
        return;
    };
    if let Some(chosen) = &call.attempt().chosen {
        chosen.set(endpoint.server().clone());
    }
    if !is_wanted(candidates.events(), call) {
        if let Some(record) = call.record() {
            record.set_server(endpoint.server().clone(), choice.reason);
        }
        return;
    }
    let decision = Arc::new(decision(candidates, call, Some(choice)));
    if let Some(record) = call.record() {
        record.note_route(&decision);
    }
    let event = || RouteEvent::RouteDecision(decision);
    candidates.events().tell(event);
}

/// Tells that no server gets the call, and with what the attempt fails.
pub(crate) fn failed<S>(candidates: &Candidates<S>, call: &ToolCall, error: &ToolError) {
    if is_wanted(candidates.events(), call) {
        let decision = decision(candidates, call, None);
        tell_failed(candidates.events(), call, decision, error);
    }
}

/// Tells that the call's replica set is not there.
pub(crate) fn unknown_set(
    events: &RouteEvents,
    call: &ToolCall,
    strategy: &'static str,
    error: &ToolError,
) {
    if is_wanted(events, call) {
        tell_failed(events, call, no_set(call, strategy), error);
    }
}

/// Writes down that the call's replica set is not there.
pub(crate) fn no_set(call: &ToolCall, strategy: &'static str) -> RouteDecision {
    let mut decision = RouteDecision::new(call, strategy);
    decision.reason = "no such replica set";
    decision
}

fn tell_failed(events: &RouteEvents, call: &ToolCall, decision: RouteDecision, error: &ToolError) {
    let (decision, error) = (Arc::new(decision), error.kind());
    if let Some(record) = call.record() {
        record.note_route(&decision);
    }
    events.tell(|| RouteEvent::RouteFailed { decision, error });
}

/// Writes down a choice, or that there is none. What it costs does not grow with the set: so many
/// servers are looked at, and no more.
pub(crate) fn decision<S>(
    candidates: &Candidates<S>,
    call: &ToolCall,
    choice: Option<Choice>,
) -> RouteDecision {
    let set = candidates.set();
    let chosen = choice.and_then(|choice| set.endpoints().get(choice.place));
    let mut decision = RouteDecision::new(call, candidates.strategy().name());
    decision.servers = set.endpoints().len();
    decision.eligible = set.all().at_least(least(call));
    let refused = candidates.tried().len() - usize::from(chosen.is_some());
    decision.refused_before = u32::try_from(refused).unwrap_or(u32::MAX);
    decision.candidates = looked_at(candidates, call, chosen);
    decision.chosen = chosen.map(|endpoint| endpoint.server().clone());
    decision.reason = match choice {
        Some(choice) => choice.reason,
        None => why_nobody(candidates, call),
    };
    if chosen.is_some() {
        decision.alternates = alternates(candidates, call);
    }
    decision
}

/// Returns the chosen server and the heaviest others, with what speaks against each.
fn looked_at<S>(
    candidates: &Candidates<S>,
    call: &ToolCall,
    chosen: Option<&Endpoint>,
) -> Vec<RouteCandidate> {
    let of = |endpoint: &Endpoint, unfit| {
        RouteCandidate::new(endpoint.server().clone(), endpoint.weight().get(), unfit)
    };
    let others = candidates.set().endpoints().iter().enumerate();
    let others = others
        .filter(|(_, other)| chosen.is_none_or(|chosen| chosen.server() != other.server()))
        .map(|(place, other)| of(other, why_not(candidates, call, place, other)));
    let rule = candidates.rule(call);
    let chosen = chosen.map(|chosen| of(chosen, rule.check(chosen).err().map(|u| u.as_str())));
    chosen
        .into_iter()
        .chain(others)
        .take(RouteDecision::MOST_CANDIDATES)
        .collect()
}

/// Returns what speaks against a server, as a word; `None` if it could have had the call.
fn why_not<S>(
    candidates: &Candidates<S>,
    call: &ToolCall,
    place: usize,
    endpoint: &Endpoint,
) -> Option<&'static str> {
    if let Err(unfit) = candidates.rule(call).check(endpoint) {
        return Some(unfit.as_str());
    }
    let mut tried = candidates.tried().iter();
    if tried.any(|tried| *tried as usize == place) {
        return Some("refused");
    }
    let failed = call.attempt().avoid.contains(endpoint.server());
    failed.then_some("failed_before")
}

fn why_nobody<S>(candidates: &Candidates<S>, call: &ToolCall) -> &'static str {
    if call.attempt().elsewhere_only {
        "no other server for a second attempt"
    } else if candidates.set().endpoints().is_empty() {
        "no server"
    } else if candidates.tried().is_empty() {
        "no server may take it"
    } else {
        "every server refused"
    }
}

/// Returns who would be asked next, by choosing on as if the chosen one refused.
fn alternates<S>(candidates: &Candidates<S>, call: &ToolCall) -> Vec<ServerId> {
    // whoever is told of here must be who is drawn if it comes to that, and nobody else
    let seed = fastrand::get_seed();
    let mut next = candidates.as_if();
    let alternates = std::iter::from_fn(|| {
        let choice = next.next(call)?;
        let endpoint = next.set().endpoints().get(choice.place)?;
        Some(endpoint.server().clone())
    });
    let alternates = alternates.take(RouteDecision::MOST_ALTERNATES).collect();
    fastrand::seed(seed);
    alternates
}
