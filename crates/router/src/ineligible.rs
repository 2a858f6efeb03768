//! The error of a call that no server may take.

use std::fmt::Write;

use tollgate_core::{Delivery, ErrorKind, ToolCall, ToolError};

use crate::choose::Candidates;
use crate::endpoint::Endpoint;
use crate::unfit::Unfit;

/// A message names at most this many servers.
const MOST_NAMED: usize = 8;

/// States that the tool's replica set is not in the pool.
pub(crate) fn unknown_set(call: &ToolCall) -> ToolError {
    refuse(format!(
        "no server may take tool \"{}\": there is no replica set \"{}\"; \
         add it to the pool before its tools are called",
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
    none_fit(call, candidates)
}

/// States of each server of the set why it does not get the call.
fn none_fit<S>(call: &ToolCall, candidates: &Candidates<S>) -> ToolError {
    let (tool, name) = (call.tool().name(), call.tool().set());
    let servers = candidates.set().endpoints();
    let judge = candidates.judge(call);
    let mut message = format!("no server of set \"{name}\" may take tool \"{tool}\": ");
    if servers.is_empty() {
        message.push_str("it has none");
        return refuse(message);
    }
    for (place, server) in servers.iter().take(MOST_NAMED).enumerate() {
        let separator = if place == 0 { "" } else { "; " };
        // writing to a String cannot fail
        let _ = write!(message, "{separator}{} ", server.server());
        let _ = match (too_light(call, server), judge.check(server)) {
            (None, Ok(())) => message.write_str("refused the call"),
            (Some(light), Ok(())) => write!(message, "{light}"),
            (None, Err(unfit)) => write!(message, "{unfit}"),
            (Some(light), Err(unfit)) => write!(message, "{light}, and {unfit}"),
        };
    }
    if let Some(more @ 1..) = servers.len().checked_sub(MOST_NAMED) {
        let _ = write!(message, "; and {more} more");
    }
    refuse(message)
}

fn too_light(call: &ToolCall, server: &Endpoint) -> Option<Unfit> {
    let (weight, needed) = (server.weight(), call.plan().route.min_weight?);
    (weight.get() < needed).then_some(Unfit::TooLight { weight, needed })
}

fn refuse(message: String) -> ToolError {
    ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, message)
}
