//! `callward breakers`: the breakers of a running gateway, and holding one open or closed.

use serde_json::{Value, json};

use super::ask::{ask, cell, items, millis, text, word};
use crate::args::Breakers;
use crate::error::Outcome;
use crate::output::{self, Cell, Column, Table};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Breakers, state: Option<&StateDir>) -> Outcome {
    let order = args.command.map(|order| json!(order));
    ask(&["breakers"], order, &args.gateway, state, show).await
}

const COLUMNS: [Column<Value>; 7] = [
    ("server", |one| cell(&one["server"])),
    ("before", |one| Cell::plain(before(one))),
    ("state", |one| word(&one["state"], one["state"] == "closed")),
    ("failures", |one| cell(&one["failures"])),
    ("window", |one| Cell::plain(window(&one["window"]))),
    ("probe in", |one| millis(&one["probe_in_ms"])),
    ("opened after", |one| cell(&one["last_trip"])),
];

fn show(answer: &Value) {
    let all = items(answer.get("breaker").unwrap_or(answer));
    output::table(&Table::of(&COLUMNS, all));
}

fn window(window: &Value) -> String {
    if window.is_null() {
        return "-".into();
    }
    let of = |key: &str| &window[key];
    format!(
        "{} calls, {} failed, {} slow",
        of("calls"),
        of("failed"),
        of("slow")
    )
}

/// Returns what a breaker guards, and of whose instance.
fn before(breaker: &Value) -> String {
    let tool = breaker["tool"].as_str();
    let subject = tool.map_or_else(|| text(&breaker["scope"]), ToOwned::to_owned);
    match breaker["instance"].as_str() {
        Some(owner) => format!("{subject} for {owner}"),
        None => subject,
    }
}
