//! `callward servers`: the servers of a running gateway, and taking one out of service.

use serde_json::{Value, json};

use super::ask::{Question, ask, cell, count, items, millis, table, text};
use crate::api::servers::NewWeight;
use crate::args::{Servers, ServersCommand};
use crate::config::show_size;
use crate::error::Outcome;
use crate::output::{Cell, Screen};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Servers, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let order = args.command.map(|command| match command {
        ServersCommand::Drain(which) => (which.server, "drain", json!({})),
        ServersCommand::Undrain(which) => (which.server, "undrain", json!({})),
        ServersCommand::Weigh(weigh) => {
            let weight = weigh.weight;
            (weigh.server, "weight", json!(NewWeight { weight }))
        }
    });
    let question = match order {
        None => Question::Get("servers"),
        Some((server, what, body)) => {
            let path = ["servers", server.as_str(), what].map(ToOwned::to_owned);
            Question::Post(path.into(), body)
        }
    };
    let show = (!args.json).then_some(show as fn(&_, &_));
    ask(question, &args.gateway, state, show, screen).await
}

fn show(answer: &Value, screen: &Screen) {
    let all = items(answer.get("server").unwrap_or(answer));
    let headings = [
        "server",
        "set",
        "weight",
        "state",
        "in flight",
        "calls",
        "errors",
        "p50",
        "p99",
        "tools",
    ];
    screen.table(&table(&headings, all, |one| {
        let ended = ["answers", "faults", "refusals", "cancelled"];
        let ended: u64 = ended.iter().map(|key| count(&one["calls"][key])).sum();
        vec![
            cell(&one["id"]),
            cell(&one["set"]),
            cell(&one["weight"]),
            Cell::warn(
                text(&one["state"]).replace('_', " "),
                one["state"] != "healthy",
            ),
            cell(&one["in_flight"]),
            Cell::plain(ended),
            errors(&one["error_rate"]),
            Cell::plain(millis(&one["p50_ms"])),
            Cell::plain(millis(&one["p99_ms"])),
            Cell::warn(&one["tools"], one["tools"] == 0),
        ]
    }));
    show_instances(all, screen);
    for one in all {
        if let Some(error) = one["last_error"].as_str() {
            screen.note(format_args!("{}: {error}", text(&one["id"])));
        }
    }
}

/// Shows instances with owners. A server that has only the one that lists its tools is left out.
fn show_instances(all: &[Value], screen: &Screen) {
    let headings = [
        "server",
        "instance of",
        "state",
        "age",
        "started in",
        "in flight",
        "calls",
        "memory",
    ];
    let mut shown = Vec::new();
    for server in all {
        let instances = items(&server["instances"]);
        if instances.len() > 1 || instances.iter().any(|one| !one["owner"].is_null()) {
            let of = |one: &Value| json!({ "server": server["id"], "instance": one });
            shown.extend(instances.iter().map(of));
        }
    }
    if shown.is_empty() {
        return;
    }
    screen.table(&table(&headings, &shown, |row| {
        let one = &row["instance"];
        let is_well = one["state"] != "down" && one["state"] != "ending";
        vec![
            cell(&row["server"]),
            cell(&one["owner"]),
            Cell::warn(text(&one["state"]), !is_well),
            Cell::plain(millis(&one["age_ms"])),
            Cell::plain(millis(&one["startup_ms"])),
            cell(&one["in_flight"]),
            cell(&one["calls"]),
            Cell::plain(one["memory"].as_u64().map_or_else(|| "-".into(), show_size)),
        ]
    }));
}

fn errors(rate: &Value) -> Cell {
    match rate.as_f64() {
        None => Cell::plain("-"),
        Some(rate) => Cell::warn(format_args!("{:.1} %", rate * 100.0), rate > 0.0),
    }
}
