//! The state of the servers, and taking one out of service.

use std::collections::HashMap;
use std::time::Duration;

use callward::core::InstanceStatus;
use callward::router::ServerStats;
use callward::{ServerId, ServerStatus, SessionId, Stack, Weight};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::similar;

/// How many characters of a session's id are shown: enough to tell sessions apart, too few to use.
const SHOWN_SESSION: usize = 8;

/// Returns all servers of a stack, in the order of its config.
pub(super) fn all(stack: &Stack) -> Value {
    let routes = stack.routes();
    let stats: HashMap<&ServerId, &ServerStats> = routes
        .iter()
        .flat_map(|set| &set.servers)
        .map(|stats| (&stats.server, stats))
        .collect();
    let servers = stack.servers();
    let one = |status: &ServerStatus| Some(server(stack, status, stats.get(&status.id)?));
    servers.iter().filter_map(one).collect()
}

fn server(stack: &Stack, status: &ServerStatus, stats: &ServerStats) -> Value {
    let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let instances = stack.instances(&status.id);
    json!({
        "id": status.id,
        "set": status.set,
        "weight": stats.weight,
        "state": status.state(),
        "up": status.up,
        "in_flight": stats.in_flight,
        "calls": stats.totals,
        "error_rate": stats.error_rate,
        "error_rate_ever": stats.error_rate_ever,
        "ewma_ms": millis(stats.ewma),
        "p50_ms": millis(stats.p50),
        "p99_ms": millis(stats.p99),
        "tools": status.tools,
        "last_error": status.last_error,
        "instances": instances.iter().map(|one| instance(&status.id, one)).collect::<Vec<_>>(),
    })
}

fn instance(server: &ServerId, status: &InstanceStatus) -> Value {
    let shown = |id: &SessionId| id.as_str().chars().take(SHOWN_SESSION).collect::<String>();
    let owner = match (&status.principal, &status.session) {
        (Some(principal), Some(session)) => Some(format!("{principal}/{}", shown(session))),
        (principal, _) => principal.as_ref().map(ToString::to_string),
    };
    json!({
        "server": server,
        "owner": owner,
        "state": status.state,
        "age_ms": status.age.as_secs_f64() * 1e3,
        "startup_ms": status.startup.map(|time| time.as_secs_f64() * 1e3),
        "calls": status.calls,
        "in_flight": status.in_flight,
        // in bytes
        "memory": status.memory,
    })
}

/// Finds a server by its id.
///
/// # Errors
///
/// A sentence with similar ids.
pub(super) fn known(stack: &Stack, id: &str) -> Result<ServerStatus, String> {
    let servers = stack.servers();
    let found = servers.iter().find(|one| one.id.as_str() == id).cloned();
    found.ok_or_else(|| {
        let known = servers.iter().map(|server| server.id.as_str());
        format!("no server {id:?}: {}", similar::hint(id, known, "servers"))
    })
}

/// The body of an order without settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

pub(super) const NOTHING: &str = "no body, or `{}`";

/// The body of an order to change a weight.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewWeight {
    weight: Weight,
}

pub(super) const WEIGHT: &str = "an object with `weight`, a whole number from 0 to 100";

/// Drains a server.
pub(super) fn drain(stack: &Stack, server: &str, _: &Nothing) -> Result<Value, String> {
    ordered(stack, server, |id| stack.drain(id).is_ok())
}

/// Ends the drain of a server.
pub(super) fn undrain(stack: &Stack, server: &str, _: &Nothing) -> Result<Value, String> {
    ordered(stack, server, |id| stack.undrain(id).is_ok())
}

/// Changes the weight of a server.
pub(super) fn weigh(stack: &Stack, server: &str, new: &NewWeight) -> Result<Value, String> {
    ordered(stack, server, |id| stack.reweigh(id, new.weight).is_ok())
}

/// Executes an order, and returns the server as it is now.
fn ordered(stack: &Stack, id: &str, act: impl FnOnce(&ServerId) -> bool) -> Result<Value, String> {
    let gone = || format!("no server {id:?}: it was removed");
    if !act(&known(stack, id)?.id) {
        return Err(gone());
    }
    let now = all(stack);
    let mut servers = now.as_array().into_iter().flatten();
    let server = servers.find(|server| server["id"] == id).ok_or_else(gone)?;
    Ok(json!({ "server": server }))
}

#[cfg(test)]
mod tests {

    use callward::Principal;

    use super::*;

    #[test]
    fn a_session_is_shown_by_the_beginning_of_its_id() {
        let owner = |status: &_| instance(&ServerId::new("a").unwrap(), status)["owner"].clone();
        let mut status = InstanceStatus::default();
        assert_eq!(owner(&status), Value::Null);
        status.principal = Some(Principal::new("ada"));
        assert_eq!(owner(&status), "ada");
        status.session = Some(SessionId::new("0123456789abcdef"));
        assert_eq!(owner(&status), "ada/01234567");
    }
}
