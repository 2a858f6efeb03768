//! The calls that the limits admit, queue and refuse.

use callward::limit::{PermitStatus, RateStatus, RateSubject};
use callward::{ServerId, ServerLimitStatus, Stack, ToolName};
use serde_json::{Value, json};

/// Returns all limits of a stack, as they are now.
pub(super) fn all(stack: &Stack) -> Value {
    let status = stack.limits();
    let of_servers = status.servers.iter();
    let of_servers = of_servers.filter_map(|one| Some(rate(one.rate.as_ref()?, Some(&one.server))));
    let rates = status.rates.iter().map(|one| rate(one, None));
    let (hedges, guard) = (stack.hedge_stats(), stack.loop_guard_stats());
    json!({
        "rates": rates.chain(of_servers).collect::<Vec<_>>(),
        "places": status.servers.iter().flat_map(permits_of).collect::<Vec<_>>(),
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
        (None, RateSubject::Principal(principal)) => ("principal", principal.to_string(), None),
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
fn permits_of(server: &ServerLimitStatus) -> Vec<Value> {
    let mut tools: Vec<_> = server.concurrency.tools.iter().collect();
    tools.sort_unstable_by_key(|(tool, _)| *tool);
    let tools = tools.into_iter().map(|(tool, status)| (Some(tool), status));
    let all = std::iter::once((None, &server.concurrency.server)).chain(tools);
    all.map(|(tool, status)| permits(&server.server, tool, status))
        .collect()
}

fn permits(server: &ServerId, tool: Option<&ToolName>, status: &PermitStatus) -> Value {
    json!({
        "server": server.as_str(),
        "tool": tool.map(ToolName::as_str),
        "limit": status.limit,
        "in_flight": status.in_flight,
        "waiting": status.waiting,
        "max_waiting": status.max_waiting,
        // refused because too many waited, or because their time was over
        "shed": status.refused,
        "expired": status.expired,
    })
}
