//! Recording how a server was chosen, and the error of a call that no server may take.

use std::sync::Arc;

use callward_core::{
    Delivery, ErrorKind, RouteCandidate, RouteDecision, ServerId, ToolCall, ToolError,
};

use crate::choose::{Choice, Selection};
use crate::endpoint::Endpoint;
use crate::events::{RouteEvent, RouteEvents};
use crate::rule::Rule;

/// A message names at most this many servers.
const MAX_NAMED: usize = 32;
/// How many candidates of a decision are listed.
const MAX_CANDIDATES: usize = 8;
/// How many alternates of a decision are listed.
const MAX_ALTERNATES: usize = 4;

/// Returns `true` if a record or a listener wants to know how a call's server is chosen.
pub(crate) fn is_wanted(events: &RouteEvents, call: &ToolCall) -> bool {
    let record = call.record.as_ref();
    events.has_listeners() || record.is_some_and(|record| record.wants_decisions())
}

/// Records that a server gets the call.
pub(crate) fn chosen<S>(selection: &Selection<S>, call: &ToolCall, choice: Choice) {
    let Some(endpoint) = selection.set.endpoints().get(choice.place) else {
        return;
    };
    if let Some(chosen) = &call.attempt().chosen {
        chosen.set(endpoint.server().clone());
    }
    let events = &selection.routing.events;
    if !is_wanted(events, call) {
        if let Some(record) = &call.record {
            let server = endpoint.server().clone();
            record.with(|facts| facts.server = Some((server, choice.reason)));
        }
        return;
    }
    let decision = Arc::new(decision(selection, call, Some(choice)));
    if let Some(record) = &call.record {
        record.note_route(&decision);
    }
    events.send(|| RouteEvent::RouteDecision(decision));
}

/// Records that no server gets the call, and with which error the attempt fails.
pub(crate) fn failed<S>(selection: &Selection<S>, call: &ToolCall, error: &ToolError) {
    let events = &selection.routing.events;
    if is_wanted(events, call) {
        send_failed(events, call, decision(selection, call, None), error);
    }
}

/// Returns the error of a call whose replica set is not there, and records it.
pub(crate) fn unknown_set(
    events: &RouteEvents,
    call: &ToolCall,
    strategy: &'static str,
) -> ToolError {
    let error = no_server(format!(
        "no server may take tool \"{}\": there is no replica set \"{}\": \
         its servers were removed, or none was added",
        call.tool().name(),
        call.tool().set()
    ));
    if is_wanted(events, call) {
        send_failed(events, call, no_set(call, strategy), &error);
    }
    error
}

/// Returns the decision for a call whose replica set is not there.
pub(crate) fn no_set(call: &ToolCall, strategy: &'static str) -> RouteDecision {
    let mut decision = RouteDecision::new(call, strategy);
    decision.reason = "no such replica set";
    decision
}

fn send_failed(events: &RouteEvents, call: &ToolCall, decision: RouteDecision, error: &ToolError) {
    let (decision, error) = (Arc::new(decision), error.kind);
    if let Some(record) = &call.record {
        record.note_route(&decision);
    }
    events.send(|| RouteEvent::RouteFailed { decision, error });
}

/// Returns a choice, or that there is none, with a bounded number of the servers looked at.
pub(crate) fn decision<S>(
    selection: &Selection<S>,
    call: &ToolCall,
    choice: Option<Choice>,
) -> RouteDecision {
    let set = &selection.set;
    let chosen = choice.and_then(|choice| set.endpoints().get(choice.place));
    let mut decision = RouteDecision::new(call, selection.routing.strategy.name());
    decision.servers = set.endpoints().len();
    decision.eligible = selection.heavy_enough(call);
    let refused = selection.tried.len() - usize::from(chosen.is_some());
    decision.refused_before = u32::try_from(refused).unwrap_or(u32::MAX);
    decision.candidates = looked_at(selection, call, choice);
    decision.chosen = chosen.map(|endpoint| endpoint.server().clone());
    decision.reason = match choice {
        Some(choice) => choice.reason,
        None => why_none(selection, call),
    };
    if chosen.is_some() {
        decision.alternates = alternates(selection, call);
    }
    decision
}

/// Returns the chosen server and the heaviest others, with what speaks against each.
fn looked_at<S>(
    selection: &Selection<S>,
    call: &ToolCall,
    choice: Option<Choice>,
) -> Vec<RouteCandidate> {
    let rule = selection.rule(call);
    let chosen = choice.map(|choice| choice.place);
    let endpoints = selection.set.endpoints();
    let others = (0..endpoints.len()).filter(|place| Some(*place) != chosen);
    let places = chosen.into_iter().chain(others);
    let candidate = |place: usize| {
        let endpoint = endpoints.get(place)?;
        let failed_before = call.attempt().avoid.contains(endpoint.server());
        let unfit = match rule.check(endpoint) {
            Err(reason) => Some(reason.as_str()),
            Ok(()) if Some(place) == chosen => None,
            Ok(()) if selection.tried.contains(&place) => Some("refused"),
            Ok(()) => failed_before.then_some("failed_before"),
        };
        let (server, weight) = (endpoint.server().clone(), endpoint.weight().get());
        Some(RouteCandidate {
            server,
            weight,
            unfit,
        })
    };
    let candidates = places.filter_map(candidate);
    candidates.take(MAX_CANDIDATES).collect()
}

fn why_none<S>(selection: &Selection<S>, call: &ToolCall) -> &'static str {
    if call.attempt().elsewhere_only {
        "no other server for a second attempt"
    } else if selection.set.endpoints().is_empty() {
        "no server"
    } else if selection.tried.is_empty() {
        "no server may take it"
    } else {
        "every server refused"
    }
}

/// Returns the servers that would be asked next, as if the chosen one refused.
fn alternates<S>(selection: &Selection<S>, call: &ToolCall) -> Vec<ServerId> {
    // the next choice must draw what is announced here
    let seed = fastrand::get_seed();
    let mut next = selection.preview();
    let alternates = std::iter::from_fn(|| next.next_server(call));
    let alternates = alternates.take(MAX_ALTERNATES).collect();
    fastrand::seed(seed);
    alternates
}

/// Returns the error of a call that no server may take, with the reason for each server.
pub(crate) fn error<S>(selection: &Selection<S>, call: &ToolCall) -> ToolError {
    if call.attempt().elsewhere_only {
        return no_server(
            "no other healthy server may take the call beside the one that has it".to_owned(),
        );
    }
    if let Some(pin) = &call.pin {
        return pinned(selection, call, pin);
    }
    let (tool, name) = (call.tool().name(), call.tool().set());
    let (rule, servers) = (selection.rule(call), selection.set.endpoints());
    let reasons = servers.iter();
    let reasons = reasons.map(|server| format!("{} {}", server.server(), why(rule, server)));
    no_server(match servers {
        [] => format!("no server of set \"{name}\" may take tool \"{tool}\": it has none"),
        _ => format!(
            "no server of set \"{name}\" may take tool \"{tool}\": {}",
            joined(reasons, "; ")
        ),
    })
}

/// Returns why the server that the call is pinned to does not get it.
fn pinned<S>(selection: &Selection<S>, call: &ToolCall, pin: &ServerId) -> ToolError {
    let (tool, name) = (call.tool().name(), call.tool().set());
    let pinned = format!("the call of tool \"{tool}\" is pinned to server \"{pin}\", which");
    if let Some(server) = selection.set.endpoint(pin) {
        let why = why(selection.rule(call), server);
        return no_server(format!(
            "{pinned} {why}; without the pin the router chooses among the set's servers"
        ));
    }
    let servers = selection.set.endpoints().iter();
    let has = joined(servers.map(|server| server.server().to_string()), ", ");
    let has = if has.is_empty() { "none" } else { &has };
    let message = format!("{pinned} set \"{name}\" does not have: it has {has}");
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, message)
}

/// Joins what is said of each server, of at most [`MAX_NAMED`] of them.
fn joined(servers: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let more = servers.len().saturating_sub(MAX_NAMED);
    let mut named: Vec<_> = servers.take(MAX_NAMED).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join(separator)
}

/// Returns what speaks against a server, as the rest of a sentence.
fn why(rule: Rule<'_>, server: &Endpoint) -> String {
    match (rule.check_weight(server), rule.check_except_weight(server)) {
        (Ok(()), Ok(())) => "refused the call".to_owned(),
        (Err(reason), Ok(())) | (Ok(()), Err(reason)) => reason.to_string(),
        (Err(light), Err(reason)) => format!("{light}, and {reason}"),
    }
}

fn no_server(message: String) -> ToolError {
    ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, message)
}
