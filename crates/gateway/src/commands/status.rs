//! `callward breakers`, `cache`, `limits` and `servers`: the state of a running gateway, and orders
//! to it. The answer of the gateway is shown as JSON or as tables.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::api;
use crate::args::{Breakers, Cache, CacheCommand, Gateway, Servers, ServersCommand};
use crate::error::{AppError, Outcome};
use crate::output;
use crate::state_dir::StateDir;
use crate::table::{self, shown, split};
use crate::view::with_values;

/// The tables of an answer: of each its heading if it has one, the path of its rows, and its
/// columns.
type Tables = &'static [&'static str];

const BREAKERS: Tables =
    &[" | . | server scope tool instance state failures window probe_in_ms last_trip"];
const CACHE: Tables = &[
    " | tools | set tool hits joined stale rescued misses hit_rate bypassed=bypasses \
     writes=invalidations stored refused=refusals saved_ms",
    "in all | total | hits joined stale rescued misses hit_rate writes=invalidations saved_ms \
     entries bytes evicted",
    "unsettled: may still land | unsettled | set tool state reason age_ms left_ms",
    "evidence | tools.evidence | tool served_s repeats different missing",
];
const LIMITS: Tables = &[
    "rates | rates | scope of set calls_per_minute waiting waited refused",
    "places | places | server tool in_flight limit waiting max_waiting shed expired",
    "retry budgets | budgets | set retries_left=tokens refused",
    "hedges | hedges | sent won not_paid no_other_server=no_server",
    "loop guard | loop_guard | calls_answered=answered failing_calls_held=held",
];
const SERVERS: Tables = &[
    " | . | server=id set weight state in_flight calls errors=error_rate p50_ms p99_ms tools \
     last_error",
    "instances | instances | server owner state age_ms startup_ms in_flight calls memory",
];

pub(crate) async fn breakers(args: Breakers, state: Option<&StateDir>) -> Outcome {
    let order = args.command.map(|order| json!(order));
    show(&["breakers"], order, &args.gateway, state, BREAKERS).await
}

pub(crate) async fn cache(args: Cache, state: Option<&StateDir>) -> Outcome {
    let Some(CacheCommand::Purge(what)) = args.command else {
        return show(&["cache"], None, &args.gateway, state, CACHE).await;
    };
    let path = ["cache", "purge"];
    if let Some(answer) = ask(&path, Some(with_values(json!(what))), &args.gateway, state).await? {
        output::line(shown("", &answer));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn limits(args: Gateway, state: Option<&StateDir>) -> Outcome {
    show(&["limits"], None, &args, state, LIMITS).await
}

pub(crate) async fn servers(args: Servers, state: Option<&StateDir>) -> Outcome {
    let (server, what, order) = match args.command {
        None => return show(&["servers"], None, &args.gateway, state, SERVERS).await,
        Some(ServersCommand::Drain(which)) => (which.server, "drain", json!({})),
        Some(ServersCommand::Undrain(which)) => (which.server, "undrain", json!({})),
        Some(ServersCommand::Weigh(to)) => (to.server, "weight", json!({ "weight": to.weight })),
    };
    let path = ["servers", server.as_str(), what];
    show(&path, Some(order), &args.gateway, state, SERVERS).await
}

/// Asks at a path below `/api`, or gives an order there. Prints the answer if it is wanted as JSON,
/// else returns it.
async fn ask(
    path: &[&str],
    order: Option<Value>,
    gateway: &Gateway,
    state: Option<&StateDir>,
) -> Result<Option<Value>, AppError> {
    let (remote, _) = api::gateway(gateway, state).await?;
    let order = order.map(|order| order.to_string().into());
    let answer: Value = remote.ask(path, order).await?;
    if gateway.json {
        output::json(&answer);
        return Ok(None);
    }
    Ok(Some(answer))
}

/// Asks, and shows the answer as tables.
async fn show(
    path: &[&str],
    order: Option<Value>,
    gateway: &Gateway,
    state: Option<&StateDir>,
    tables: Tables,
) -> Outcome {
    let Some(answer) = ask(path, order, gateway, state).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    // the answer to an order is what was changed
    let answer = ["breaker", "server"]
        .iter()
        .find_map(|changed| answer.get(changed))
        .unwrap_or(&answer);
    for table in tables {
        let [heading, path, columns] = split(table);
        let mut rows = items(answer);
        for name in path.split('.').filter(|name| !name.is_empty()) {
            rows = rows.iter().flat_map(|row| items(&row[name])).collect();
        }
        if !heading.is_empty() {
            // counters that stand alone are shown once one has counted
            rows.retain(|row| numbers(row).any(|number| number != 0.0));
            if rows.is_empty() {
                continue;
            }
            output::heading(&format!("\n{heading}"));
        }
        table::print(columns, rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the elements of a list, or the one element itself.
pub(super) fn items(answer: &Value) -> Vec<&Value> {
    match answer {
        Value::Array(items) => items.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

fn numbers(row: &Value) -> impl Iterator<Item = f64> {
    let members = row.as_object().into_iter().flatten();
    members.filter_map(|(_, value)| value.as_f64())
}
