//! The state of a stack as JSON, and orders that change it: servers, breakers, cache and limits.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use callward::breaker::{BreakerStatus, Subject};
use callward::cache::Counts;
use callward::core::InstanceStatus;
use callward::limit::{RateStatus, RateSubject};
use callward::registry::Catalogue;
use callward::router::ServerStats;
use callward::{
    Principal, ReplicaSetId, ServerId, ServerLimitStatus, ServerStatus, SessionId, Stack, ToolName,
    Weight,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::BreakersCommand;
use crate::{similar, view};

/// How many characters of a session's id are shown: enough to tell sessions apart, too few to use.
const SHOWN_SESSION: usize = 8;

/// Returns all servers of a stack, in the order of its config.
pub(super) fn servers(stack: &Stack) -> Value {
    let routes = stack.routes();
    let all = routes.iter().flat_map(|set| &set.servers);
    let stats: HashMap<_, _> = all.map(|stats| (&stats.server, stats)).collect();
    let one = |status: &ServerStatus| Some(server(stack, status, stats.get(&status.id)?));
    stack.servers().iter().filter_map(one).collect()
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
fn known(stack: &Stack, id: &str) -> Result<ServerStatus, String> {
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
    let is_done = act(&known(stack, id)?.id);
    let now = servers(stack);
    let mut servers = now.as_array().into_iter().flatten();
    let server = servers.find(|server| is_done && server["id"] == id);
    let server = server.ok_or_else(|| format!("no server {id:?}: it was removed"))?;
    Ok(json!({ "server": server }))
}

/// Returns all breakers of a stack.
pub(super) fn breakers(stack: &Stack) -> Value {
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
                let entries = catalogue.entries().iter().chain(catalogue.methods());
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

/// Returns what the cache did since the gateway started, and what it keeps now.
pub(super) fn cache(stack: &Stack) -> Value {
    let catalogue = stack.catalogue();
    let stats = stack.cache().stats();
    let mut total = json!(stats);
    total["hit_rate"] = json!(stats.counts.hit_rate());
    let learned = stack.learned_lifetimes();
    let tools = stack.cache().tools();
    // a call that was only explained leaves a tool without counts
    let called = tools
        .iter()
        .filter(|stats| stats.counts != Counts::default());
    let tools = called.map(|stats| {
        let seen = learned.get(&(stats.set.clone(), stats.tool.clone()));
        let mut tool = json!(stats);
        tool["hit_rate"] = json!(stats.counts.hit_rate());
        tool["name"] = json!(client_name(&catalogue, &stats.set, &stats.tool));
        tool["evidence"] = view::evidence(seen);
        if tool["evidence"].is_object() {
            tool["evidence"]["tool"] = json!(stats.tool);
        }
        tool
    });
    json!({
        "total": total,
        "tools": tools.collect::<Vec<_>>(),
        // state that writes which ended may still change: nothing of it is served from the cache
        "unsettled": stack.cache().unsettled(),
    })
}

/// Returns the name that clients call a tool by; `None` if it is not offered any more.
fn client_name(catalogue: &Catalogue, set: &ReplicaSetId, tool: &ToolName) -> Option<String> {
    let mut entries = catalogue.entries().iter();
    let offered = entries.find(|entry| entry.tool().set() == set && entry.tool().name() == tool);
    offered.map(|entry| entry.client_name().to_owned())
}

/// What to purge from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purge {
    All(bool),
    /// The results of one principal alone.
    Principal(String),
    /// The results read from the replica set of this server.
    Server(String),
    /// The results of tools with this tag, and those read from scopes of this name.
    Tag(String),
    /// The results of this tool, by the name clients see.
    Tool(String),
}

pub(super) const PURGE: &str =
    "an object with exactly one of `all`, `principal`, `server`, `tag`, `tool`";

/// Purges a part of the cache that exists.
pub(super) fn purge(stack: &Stack, _: &str, what: &Purge) -> Result<Value, String> {
    let cache = stack.cache();
    let mut set = None;
    match what {
        Purge::All(true) => cache.purge_all(),
        Purge::All(false) => return Err("`all` empties the cache only if it is `true`".into()),
        Purge::Principal(principal) => cache.purge_principal(&Principal::new(principal.as_str())),
        Purge::Server(id) => {
            let server = known(stack, id)?;
            cache.purge_set(&server.set);
            set = Some(server.set);
        }
        Purge::Tag(tag) => cache.purge_tag(tag),
        Purge::Tool(name) => {
            let catalogue = stack.catalogue();
            let entry = catalogue.find_any(name).ok_or_else(|| {
                let known = catalogue.entries().iter().map(|entry| entry.client_name());
                match similar::near(name, known) {
                    Some(hint) => format!("no tool {name:?}: {hint}"),
                    None => match stack.prepare(name, "") {
                        Err(error) => error.message.to_string(),
                        Ok(_) => format!("no tool {name:?}"),
                    },
                }
            })?;
            let tool = entry.tool();
            cache.purge_tool(tool.set(), tool.name());
            set = Some(tool.set().clone());
        }
    }
    Ok(json!({ "purged": what, "set": set.as_ref().map(ReplicaSetId::as_str) }))
}

/// Returns all limits of a stack, as they are now.
pub(super) fn limits(stack: &Stack) -> Value {
    let status = stack.limits();
    let of_servers = status.servers.iter();
    let of_servers = of_servers.filter_map(|one| Some(rate(one.rate.as_ref()?, Some(&one.server))));
    let rates = status.rates.iter().map(|one| rate(one, None));
    let (hedges, guard) = (stack.hedge_stats(), stack.loop_guard_stats());
    json!({
        "rates": rates.chain(of_servers).collect::<Vec<_>>(),
        "places": status.servers.iter().flat_map(permits).collect::<Vec<_>>(),
        "budgets": stack.retry_budgets(),
        "hedges": {
            "sent": hedges.sent,
            "won": hedges.won,
            "not_paid": hedges.no_budget,
            "no_server": hedges.no_server,
        },
        "loop_guard": { "answered": guard.answered, "held": guard.held },
    })
}

/// Describes a rate: of a server, if one is given.
fn rate(rate: &RateStatus, server: Option<&ServerId>) -> Value {
    let (scope, of, set) = match (server, &rate.subject) {
        (Some(server), _) => ("server", server.to_string(), None),
        (None, RateSubject::Tool { set, tool }) => ("tool", tool.to_string(), Some(set.as_str())),
        (None, other) => ("all", other.to_string(), None),
    };
    json!({
        "scope": scope,
        "of": of,
        "set": set,
        "calls_per_minute": rate.calls_per_minute,
        "waiting": rate.waiting,
        "waited": rate.waited,
        "refused": rate.refused,
    })
}

/// Describes the permits of a server and then those of its tools, by name.
fn permits(of: &ServerLimitStatus) -> Vec<Value> {
    let tools: BTreeMap<_, _> = of.concurrency.tools.iter().collect();
    let tools = tools.into_iter().map(|(tool, status)| (Some(tool), status));
    let all = [(None, &of.concurrency.server)].into_iter().chain(tools);
    all.map(|(tool, status)| {
        json!({
            "server": of.server,
            "tool": tool,
            "limit": status.limit,
            "in_flight": status.in_flight,
            "waiting": status.waiting,
            "max_waiting": status.max_waiting,
            // refused because too many waited, or because their time was over
            "shed": status.refused,
            "expired": status.expired,
        })
    })
    .collect()
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
