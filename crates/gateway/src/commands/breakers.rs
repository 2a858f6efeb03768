//! `callward breakers`: the breakers of a running gateway, and holding one open or closed.

use serde_json::{Value, json};

use super::ask::{Question, ask, cell, items, millis, table, text};
use crate::api::breakers::{Force, ForceAction};
use crate::args::{Breakers, BreakersCommand};
use crate::error::Outcome;
use crate::output::{Cell, Screen};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Breakers, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let forced = args.command.map(|command| match command {
        BreakersCommand::Open(which) => (ForceAction::Open, which),
        BreakersCommand::Close(which) => (ForceAction::Close, which),
        BreakersCommand::Release(which) => (ForceAction::Release, which),
    });
    let question = match forced {
        None => Question::Get("breakers"),
        Some((action, which)) => {
            let order = Force {
                action,
                server: which.server,
                tool: which.tool,
            };
            Question::Post(vec!["breakers".into()], json!(order))
        }
    };
    let show = (!args.json).then_some(show as fn(&_, &_));
    ask(question, &args.gateway, state, show, screen).await
}

fn show(answer: &Value, screen: &Screen) {
    let headings = [
        "server",
        "before",
        "state",
        "failures",
        "window",
        "probe in",
        "opened after",
    ];
    let all = items(answer.get("breaker").unwrap_or(answer));
    screen.table(&table(&headings, all, |one| {
        let window = match &one["window"] {
            Value::Null => "-".into(),
            window => format!(
                "{} calls, {} failed, {} slow",
                window["calls"], window["failed"], window["slow"]
            ),
        };
        vec![
            cell(&one["server"]),
            Cell::plain(before(one)),
            Cell::warn(
                text(&one["state"]).replace('_', " "),
                one["state"] != "closed",
            ),
            cell(&one["failures"]),
            Cell::plain(window),
            Cell::plain(millis(&one["probe_in_ms"])),
            cell(&one["last_trip"]),
        ]
    }));
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
