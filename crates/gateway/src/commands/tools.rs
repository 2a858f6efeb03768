//! `callward tools`: every tool, and what is made of it.

use std::process::ExitCode;

use callward::Annotations;
use callward::core::SafetyLevel;
use serde::Serialize;

use crate::args::Tools;
use crate::commands::from::{Place, Purpose};
use crate::error::Outcome;
use crate::output::{Cell, Column, Screen, Table};
use crate::state_dir::StateDir;
use crate::view::ToolView;

pub(crate) async fn run(args: Tools, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let place = Place::find(&args.from, Purpose::Ask, state, screen).await?;
    let tools = place.tools().await;
    place.tell_missing(screen).await;
    place.end().await;
    let tools = only(tools?, &args.only);
    match (args.by_safety, args.json) {
        (false, false) => {
            screen.table(&table(&tools));
            for tool in &tools {
                let seen = tool.evidence.as_ref();
                if let Some(missing) = seen.and_then(|seen| seen.missing.as_ref()) {
                    screen.out(format_args!("{}: {missing}", tool.name));
                }
            }
        }
        (false, true) => {
            for tool in &tools {
                screen.json(tool);
            }
        }
        (true, json) => show_groups(&tools, json, screen),
    }
    Ok(ExitCode::SUCCESS)
}

/// Keeps the tools whose effective hints match all patterns.
fn only(tools: Vec<ToolView>, patterns: &[Annotations]) -> Vec<ToolView> {
    let hints: Vec<Annotations> = tools
        .iter()
        .map(|tool| tool.plan.annotations.clone())
        .collect();
    let tools = tools.into_iter().zip(hints.iter().map(Some));
    let all = |hints: &Annotations| patterns.iter().all(|pattern| hints.matches(pattern));
    Annotations::filter(tools, all).collect()
}

/// The groups of `--by-safety`: of each its level, its word in JSON and its heading.
const GROUPS: [(SafetyLevel, &str, &str); 3] = [
    (
        SafetyLevel::Safe,
        "read_only",
        "Read-only: let the agent call freely",
    ),
    (
        SafetyLevel::Moderate,
        "mutating",
        "Mutating: watch what changes",
    ),
    (
        SafetyLevel::Dangerous,
        "destructive",
        "Destructive: confirm each call",
    ),
];

/// A tool and its group, as JSON.
#[derive(Serialize)]
struct InGroup<'a> {
    group: &'static str,
    #[serde(flatten)]
    tool: &'a ToolView,
}

fn show_groups(tools: &[ToolView], json: bool, screen: &Screen) {
    for (at, (level, group, heading)) in GROUPS.into_iter().enumerate() {
        let is_in = |tool: &&ToolView| tool.plan.effect().safety_level() == level;
        let tools: Vec<_> = tools.iter().filter(is_in).collect();
        if json {
            for tool in tools {
                screen.json(&InGroup { group, tool });
            }
            continue;
        }
        if at > 0 {
            screen.out("");
        }
        screen.heading(heading);
        if tools.is_empty() {
            screen.out("none");
            continue;
        }
        screen.table(&Table::of(&IN_GROUP, tools));
    }
}

const TOOL: Column<ToolView> = ("tool", |tool| Cell::plain(&tool.name));
const EFFECT: Column<ToolView> = ("effect", |tool| Cell::effect(&tool.plan.effect));
const CONFIRM: Column<ToolView> = ("confirm", |tool| {
    let confirm = tool.plan.confirm;
    Cell::warn(if confirm { "yes" } else { "no" }, confirm)
});
const CATEGORY: Column<ToolView> = ("category", |tool| Cell::plain(tool.plan.category));
const IN_GROUP: [Column<ToolView>; 4] = [TOOL, EFFECT, CATEGORY, CONFIRM];

/// Puts the verdicts under each other. What is recorded has a column where anything is.
pub(crate) fn table(tools: &[ToolView]) -> Table {
    let mut columns: Vec<Column<ToolView>> = vec![
        TOOL,
        EFFECT,
        ("safety", |tool| Cell::plain(&tool.plan.safety)),
        ("cache", |tool| Cell::plain(cache(tool))),
        ("retry", |tool| Cell::plain(&tool.plan.retry)),
        CONFIRM,
    ];
    if tools.iter().any(|tool| tool.plan.recorded != "none") {
        columns.push(("recorded", |tool| Cell::plain(&tool.plan.recorded)));
    }
    columns.push(("source", |tool| Cell::plain(source(tool))));
    Table::of(&columns, tools)
}

/// Returns how long results are kept; where that is learned, how long they are served by now.
fn cache(tool: &ToolView) -> String {
    match &tool.evidence {
        Some(seen) => format!("learned:{}s", seen.served_s),
        None => tool.plan.cache.clone(),
    }
}

/// Names the source, and how many rules over the arguments may say otherwise of a call.
fn source(tool: &ToolView) -> String {
    match tool.plan.argument_rules {
        0 => tool.source.clone(),
        1 => format!("{}, 1 rule", tool.source),
        several => format!("{}, {several} rules", tool.source),
    }
}
