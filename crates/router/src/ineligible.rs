//! The error of a call that no server may take.

use std::fmt::Write;

use callward_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError};

use crate::choose::Candidates;
use crate::endpoint::Endpoint;
use crate::rule::Rule;

/// A message names at most this many servers.
const MOST_NAMED: usize = 32;

/// States that the tool's replica set is not in the pool.
pub(crate) fn unknown_set(call: &ToolCall) -> ToolError {
    refuse(format!(
        "no server may take tool \"{}\": there is no replica set \"{}\": \
         its servers were removed, or none was added",
        call.tool().name(),
        call.tool().set()
    ))
}

/// States why no member of the set may take the call.
pub(crate) fn error<S>(call: &ToolCall, candidates: &Candidates<S>) -> ToolError {
    if call.attempt().elsewhere_only {
        // the usual end of a hedge where there is one server: nobody reads more than the kind
        return ToolError::new(
            ErrorKind::NoEligibleServer,
            Delivery::NotSent,
            "no other healthy server may take the call beside the one that has it",
        );
    }
    match call.pin() {
        Some(pin) => pinned(call, candidates, pin),
        None => none_fit(call, candidates),
    }
}

/// States of each server of the set why it does not get the call.
fn none_fit<S>(call: &ToolCall, candidates: &Candidates<S>) -> ToolError {
    let (tool, name) = (call.tool().name(), call.tool().set());
    let servers = candidates.set().endpoints();
    let mut message = format!("no server of set \"{name}\" may take tool \"{tool}\": ");
    if servers.is_empty() {
        message.push_str("it has none");
        return refuse(message);
    }
    let rule = candidates.rule(call);
    for (place, server) in servers.iter().take(MOST_NAMED).enumerate() {
        let separator = if place == 0 { "" } else { "; " };
        // writing to a String cannot fail
        let _ = write!(message, "{separator}{} ", server.server());
        let _ = write_why(&mut message, rule, server);
    }
    if let Some(more @ 1..) = servers.len().checked_sub(MOST_NAMED) {
        let _ = write!(message, "; and {more} more");
    }
    refuse(message)
}

/// States why the one server that the call is meant for does not get it.
fn pinned<S>(call: &ToolCall, candidates: &Candidates<S>, pin: &ServerId) -> ToolError {
    let (tool, name) = (call.tool().name(), call.tool().set());
    let mut message = format!("the call of tool \"{tool}\" is meant for server \"{pin}\", which ");
    let Some(server) = candidates.set().endpoint(pin) else {
        let _ = write!(message, "set \"{name}\" does not have: ");
        let servers = candidates.set().endpoints();
        let names = servers.iter().map(|server| server.server().as_str());
        let names: Vec<_> = names.take(MOST_NAMED).collect();
        let _ = match (servers.len().saturating_sub(MOST_NAMED), names.is_empty()) {
            (_, true) => write!(message, "it has none"),
            (0, _) => write!(message, "it has {}", names.join(", ")),
            (more, _) => write!(message, "it has {}, and {more} more", names.join(", ")),
        };
        return ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, message);
    };
    let _ = write_why(&mut message, candidates.rule(call), server);
    message.push_str("; without the pin the router chooses among the set's servers");
    refuse(message)
}

/// Writes what speaks against a server, as the rest of a sentence: that it is too light, and what is
/// the matter with it besides.
fn write_why(out: &mut String, rule: Rule<'_>, server: &Endpoint) -> std::fmt::Result {
    match (rule.check_weight(server), rule.check_besides_weight(server)) {
        (Ok(()), Ok(())) => out.write_str("refused the call"),
        (Err(unfit), Ok(())) | (Ok(()), Err(unfit)) => write!(out, "{unfit}"),
        (Err(light), Err(unfit)) => write!(out, "{light}, and {unfit}"),
    }
}

fn refuse(message: String) -> ToolError {
    ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, message)
}
