//! The state of the breakers, and holding one open or closed.

use callward::Stack;
use callward::breaker::{BreakerStatus, Subject};
use serde_json::{Value, json};

use super::servers::known;
use crate::args::BreakersCommand;
use crate::similar;

/// Returns all breakers of a stack.
pub(super) fn all(stack: &Stack) -> Value {
    stack.breakers().iter().map(breaker).collect()
}

fn breaker(status: &BreakerStatus) -> Value {
    json!({
        "server": status.server.as_str(),
        // `server` or `tool`
        "scope": status.subject.as_str(),
        "tool": status.subject.tool().map(|tool| tool.as_str()),
        // the owner of an instance, unless all callers share it
        "instance": status.instance,
        "state": status.state.as_str(),
        "failures": status.failures,
        "window": status.window,
        "last_trip": status.last_trip.as_deref(),
        "probe_in_ms": status.time_to_probe.map(|wait| wait.as_secs_f64() * 1e3),
    })
}

pub(super) const FORCE: &str = "an object with `action` (open, close or release), `server`, and at \
                                most one of `tool` and `discovery`";

/// Executes an order, and returns the breaker.
pub(super) fn force(stack: &Stack, _: &str, order: &BreakersCommand) -> Result<Value, String> {
    let (BreakersCommand::Open(which)
    | BreakersCommand::Close(which)
    | BreakersCommand::Release(which)) = order;
    let server = known(stack, &which.server)?;
    let subject = match (&which.tool, which.discovery) {
        (Some(_), true) => return Err("expected `tool` or `discovery`, found both".to_owned()),
        (None, true) => Subject::Discovery,
        (None, false) => Subject::Server,
        (Some(tool), false) => {
            let catalogue = stack.catalogue();
            let of_set = || {
                let entries = catalogue.entries().iter();
                entries.filter(|entry| entry.tool().set() == &server.set)
            };
            let is_named = |name: &str, client_name: &str| name == tool || client_name == tool;
            let named =
                of_set().find(|entry| is_named(entry.tool().name().as_str(), entry.client_name()));
            let entry = named.ok_or_else(|| {
                let known = of_set().map(|entry| entry.tool().name().as_str());
                let hint = similar::hint(tool, known, "tools of this server");
                format!("no tool {tool:?} of server {:?}: {hint}", which.server)
            })?;
            Subject::from(entry.tool().name())
        }
    };
    let breakers = stack.breaker_set();
    match order {
        BreakersCommand::Open(_) => breakers.force_open(&server.id, subject.clone()),
        BreakersCommand::Close(_) => breakers.force_closed(&server.id, subject.clone()),
        BreakersCommand::Release(_) => breakers.release(&server.id, subject.clone()),
    }
    let is_it = |status: &&BreakerStatus| status.server == server.id && status.subject == subject;
    match stack.breakers().iter().find(is_it) {
        Some(status) => Ok(json!({ "breaker": breaker(status) })),
        None => Err(format!(
            "the {} of server {:?} has no breaker yet, so nothing was held",
            subject.as_str(),
            which.server
        )),
    }
}
