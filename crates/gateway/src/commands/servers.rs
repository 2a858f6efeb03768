//! `callward servers`: the servers of a running gateway, and taking one out of service.

use serde_json::{Value, json};

use super::ask::{ask, cell, count, items, millis, text, word};
use crate::args::{Servers, ServersCommand};
use crate::config::show_size;
use crate::error::Outcome;
use crate::output::{self, Cell, Column, Table};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Servers, state: Option<&StateDir>) -> Outcome {
    let (server, what, order) = match args.command {
        None => return ask(&["servers"], None, &args.gateway, state, show).await,
        Some(ServersCommand::Drain(which)) => (which.server, "drain", json!({})),
        Some(ServersCommand::Undrain(which)) => (which.server, "undrain", json!({})),
        Some(ServersCommand::Weigh(to)) => (to.server, "weight", json!({ "weight": to.weight })),
    };
    let path = ["servers", server.as_str(), what];
    ask(&path, Some(order), &args.gateway, state, show).await
}

const COLUMNS: [Column<Value>; 10] = [
    ("server", |one| cell(&one["id"])),
    ("set", |one| cell(&one["set"])),
    ("weight", |one| cell(&one["weight"])),
    ("state", |one| {
        word(&one["state"], one["state"] == "healthy")
    }),
    ("in flight", |one| cell(&one["in_flight"])),
    ("calls", |one| {
        let ended = ["answers", "faults", "refusals", "cancelled"];
        let ended = ended.iter().map(|key| count(&one["calls"][key]));
        Cell::plain(ended.sum::<u64>())
    }),
    ("errors", |one| match one["error_rate"].as_f64() {
        None => Cell::plain("-"),
        Some(rate) => Cell::warn(format_args!("{:.1} %", rate * 100.0), rate > 0.0),
    }),
    ("p50", |one| millis(&one["p50_ms"])),
    ("p99", |one| millis(&one["p99_ms"])),
    ("tools", |one| Cell::warn(&one["tools"], one["tools"] == 0)),
];

/// Of an instance, with the id of its server as `server`.
const INSTANCE: [Column<Value>; 8] = [
    ("server", |one| cell(&one["server"])),
    ("instance of", |one| cell(&one["owner"])),
    ("state", |one| {
        let state = &one["state"];
        word(state, state != "down" && state != "ending")
    }),
    ("age", |one| millis(&one["age_ms"])),
    ("started in", |one| millis(&one["startup_ms"])),
    ("in flight", |one| cell(&one["in_flight"])),
    ("calls", |one| cell(&one["calls"])),
    ("memory", |one| {
        Cell::plain(one["memory"].as_u64().map_or_else(|| "-".into(), show_size))
    }),
];

fn show(answer: &Value) {
    let all = items(answer.get("server").unwrap_or(answer));
    output::table(&Table::of(&COLUMNS, all));
    let mut shown = Vec::new();
    for server in all {
        let instances = items(&server["instances"]);
        // a server that has only the one that lists its tools is left out
        if instances.len() > 1 || instances.iter().any(|one| !one["owner"].is_null()) {
            shown.extend(instances.iter().cloned().map(|mut one| {
                one["server"] = server["id"].clone();
                one
            }));
        }
    }
    if !shown.is_empty() {
        output::table(&Table::of(&INSTANCE, &shown));
    }
    for one in all {
        if let Some(error) = one["last_error"].as_str() {
            output::note(format_args!("{}: {error}", text(&one["id"])));
        }
    }
}
