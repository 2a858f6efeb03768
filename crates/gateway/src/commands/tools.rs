//! `callward tools`: every tool with its plan.

use std::process::ExitCode;

use callward::Annotations;
use serde::Deserialize;
use serde_json::Value;

use super::ask::{cell, count, text};
use crate::args::Tools;
use crate::commands::from::{Place, Purpose};
use crate::error::Outcome;
use crate::output::{self, Cell, Column, Table};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Tools, state: Option<&StateDir>) -> Outcome {
    let place = Place::find(&args.from, Purpose::Ask, state).await?;
    let tools = place.tools().await;
    place.tell_missing().await;
    place.end().await;
    let tools = only(tools?, &args.only);
    match (args.by_safety, args.json) {
        (false, false) => {
            output::table(&table(&tools));
            for tool in &tools {
                if let Some(missing) = tool["evidence"]["missing"].as_str() {
                    output::line(format_args!("{}: {missing}", text(&tool["name"])));
                }
            }
        }
        (false, true) => {
            for tool in &tools {
                output::json(tool);
            }
        }
        (true, json) => show_groups(&tools, json),
    }
    Ok(ExitCode::SUCCESS)
}

/// Keeps the tools whose effective hints match all patterns.
fn only(mut tools: Vec<Value>, patterns: &[Annotations]) -> Vec<Value> {
    tools.retain(|tool| {
        let hints = Annotations::deserialize(&tool["annotations"]).unwrap_or_default();
        patterns.iter().all(|pattern| hints.matches(pattern))
    });
    tools
}

/// The groups of `--by-safety`: of each the level, its word in JSON and its heading.
const GROUPS: [[&str; 3]; 3] = [
    ["safe", "read_only", "Read-only: let the agent call freely"],
    ["moderate", "mutating", "Mutating: watch what changes"],
    ["dangerous", "destructive", "Destructive: confirm each call"],
];

/// Returns `true` if a tool has this level. One that this version does not know is taken for the
/// worst.
fn has_level(tool: &Value, level: &str) -> bool {
    let is_known = GROUPS.iter().any(|[known, ..]| tool["safety"] == *known);
    tool["safety"] == level || (!is_known && level == "dangerous")
}

fn show_groups(tools: &[Value], json: bool) {
    for (at, [level, group, heading]) in GROUPS.into_iter().enumerate() {
        let of_level = |tool: &&Value| has_level(tool, level);
        let tools: Vec<_> = tools.iter().filter(of_level).collect();
        if json {
            for tool in tools {
                let mut tool = tool.clone();
                tool["group"] = group.into();
                output::json(&tool);
            }
            continue;
        }
        if at > 0 {
            output::line("");
        }
        output::heading(heading);
        if tools.is_empty() {
            output::line("none");
            continue;
        }
        output::table(&Table::of(&IN_GROUP, tools));
    }
}

const TOOL: Column<Value> = ("tool", |tool| cell(&tool["name"]));
const EFFECT: Column<Value> = ("effect", |tool| Cell::effect(&text(&tool["effect"])));
const CONFIRM: Column<Value> = ("confirm", |tool| {
    let confirm = tool["confirm"] == true;
    Cell::warn(if confirm { "yes" } else { "no" }, confirm)
});
const CATEGORY: Column<Value> = ("category", |tool| cell(&tool["category"]));
const IN_GROUP: [Column<Value>; 4] = [TOOL, EFFECT, CATEGORY, CONFIRM];

/// Puts the verdicts under each other. What is recorded has a column where anything is.
pub(crate) fn table(tools: &[Value]) -> Table {
    let mut columns: Vec<Column<Value>> = vec![
        TOOL,
        EFFECT,
        ("safety", |tool| cell(&tool["safety"])),
        ("cache", |tool| Cell::plain(cache(tool))),
        ("retry", |tool| cell(&tool["retry"])),
        CONFIRM,
    ];
    if tools
        .iter()
        .any(|tool| !matches!(tool["recorded"].as_str(), None | Some("none")))
    {
        columns.push(("recorded", |tool| cell(&tool["recorded"])));
    }
    columns.push(("source", |tool| Cell::plain(source(tool))));
    Table::of(&columns, tools)
}

/// Returns how long results are kept; where that is learned, how long they are served by now.
fn cache(tool: &Value) -> String {
    match tool["evidence"]["served_s"].as_f64() {
        Some(seconds) => format!("learned:{seconds}s"),
        None => text(&tool["cache"]),
    }
}

/// Names the source, and the number of rules over arguments that may change a call's plan.
fn source(tool: &Value) -> String {
    let source = text(&tool["source"]);
    match count(&tool["argument_rules"]) {
        0 => source,
        1 => format!("{source}, 1 rule"),
        several => format!("{source}, {several} rules"),
    }
}
