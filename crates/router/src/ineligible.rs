//! The error of a call that no server may take.

use std::fmt::Write;

use tollgate_core::{Delivery, ErrorKind, ToolCall, ToolError};

use crate::set::ReplicaSet;

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
pub(crate) fn error<S>(call: &ToolCall, set: &ReplicaSet<S>) -> ToolError {
    if call.attempt().elsewhere_only {
        // the usual end of a hedge where there is one server: nobody reads more than the kind
        return ToolError::new(
            ErrorKind::NoEligibleServer,
            Delivery::NotSent,
            "no other healthy server may take the call beside the one that has it",
        );
    }
    none_fit(call, set)
}

/// States that no member of the set is heavy enough and healthy, and how each is.
fn none_fit<S>(call: &ToolCall, set: &ReplicaSet<S>) -> ToolError {
    let mut message = format!("no server may take tool \"{}\": ", call.tool().name());
    if set.members().is_empty() {
        // writing to a String cannot fail
        let _ = write!(message, "set \"{}\" has no servers", call.tool().set());
        return refuse(message);
    }
    let needed = call.plan().route.min_weight.unwrap_or(0);
    let _ = write!(
        message,
        "it needs a healthy server of weight {needed} or more, and set \"{}\" has only ",
        call.tool().set()
    );
    for (place, member) in set.members().iter().take(MOST_NAMED).enumerate() {
        let _ = write!(
            message,
            "{}{} (weight {}, {})",
            if place == 0 { "" } else { ", " },
            member.server(),
            member.weight(),
            if member.is_healthy(call) {
                "healthy"
            } else {
                "unhealthy"
            }
        );
    }
    if let Some(more @ 1..) = set.members().len().checked_sub(MOST_NAMED) {
        let _ = write!(message, " and {more} more");
    }
    refuse(message)
}

fn refuse(message: String) -> ToolError {
    ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, message)
}
