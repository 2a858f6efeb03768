//! `callward tools`: every tool, and what is made of it.

use std::process::ExitCode;

use callward::Annotations;
use callward::core::activity::{BySafety, SafetyGroup};
use serde::Serialize;

use crate::args::Tools;
use crate::commands::from::Place;
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table};
use crate::state_dir::StateDir;
use crate::view::ToolView;

pub(crate) async fn run(args: Tools, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let place = Place::find(&args.from, state, screen).await?;
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
        (true, json) => show_groups(&grouped(tools), json, screen),
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

fn grouped(tools: Vec<ToolView>) -> BySafety<ToolView> {
    tools
        .into_iter()
        .map(|tool| (tool.plan.effect(), tool))
        .collect()
}

/// A tool and its group, as JSON.
#[derive(Serialize)]
struct InGroup<'a> {
    group: SafetyGroup,
    #[serde(flatten)]
    tool: &'a ToolView,
}

fn show_groups(groups: &BySafety<ToolView>, json: bool, screen: &Screen) {
    for (at, (group, tools)) in groups.iter().enumerate() {
        if json {
            for tool in tools {
                screen.json(&InGroup { group, tool });
            }
            continue;
        }
        if at > 0 {
            screen.out("");
        }
        screen.heading(&format!("{}: {}", group.title(), group.advice()));
        if tools.is_empty() {
            screen.out("none");
        } else {
            screen.table(&actions(tools));
        }
    }
}

/// Puts what the tools do under each other.
fn actions(tools: &[ToolView]) -> Table {
    let mut table = Table::new(&["tool", "risk", "category", "confirm", "action"]);
    for tool in tools {
        let confirm = if tool.plan.confirm { "yes" } else { "no" };
        table.row(vec![
            Cell::plain(&tool.name),
            Cell::plain(tool.plan.risk),
            Cell::plain(&tool.plan.category_label),
            Cell::warn(confirm, tool.plan.confirm),
            Cell::plain(&tool.plan.action),
        ]);
    }
    table
}

/// Puts the verdicts under each other. What is recorded has a column where anything is.
pub(crate) fn table(tools: &[ToolView]) -> Table {
    let mut head = vec!["tool", "effect", "safety", "cache", "retry", "confirm"];
    let records = tools.iter().any(|tool| tool.plan.recorded != "none");
    if records {
        head.push("recorded");
    }
    head.push("source");
    let mut table = Table::new(&head);
    for tool in tools {
        let confirm = if tool.plan.confirm { "yes" } else { "no" };
        let mut row = vec![
            Cell::plain(&tool.name),
            Cell::effect(&tool.plan.effect),
            Cell::plain(&tool.plan.safety),
            Cell::plain(cache(tool)),
            Cell::plain(&tool.plan.retry),
            Cell::warn(confirm, tool.plan.confirm),
        ];
        if records {
            row.push(Cell::plain(&tool.plan.recorded));
        }
        row.push(Cell::plain(source(tool)));
        table.row(row);
    }
    table
}

/// Says how long results are kept; where that is learned, how long they are served by now.
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
