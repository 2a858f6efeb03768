//! `callward tools`: every tool with its plan.

use std::process::ExitCode;

use callward::registry::Query;
use serde_json::Value;

use crate::args::Tools;
use crate::commands::from::Place;
use crate::commands::status;
use crate::error::{AppError, Outcome};
use crate::output::{self, counted};
use crate::state_dir::StateDir;
use crate::table::{self, shown};

pub(crate) async fn run(args: Tools, state: Option<&StateDir>) -> Outcome {
    let fields = args.search.fields();
    let mut query = Query::default();
    for (field, value) in &fields {
        let set = query.set(field, value);
        set.map_err(|error| AppError::Usage(error.to_string()))?;
    }
    let place = Place::find(&args.from, false, state).await?;
    if args.stats {
        let stats: Result<Value, _> = place.remote.ask(&["statistics"], None).await;
        place.end().await;
        show_stats(&stats?, args.json);
        return Ok(ExitCode::SUCCESS);
    }
    let found = place.remote.tools(&fields).await;
    place.tell_missing().await;
    place.end().await;
    let (tools, total) = found?;
    if tools.len() < total {
        output::note(format_args!("{} of {total} tools", tools.len()));
    }
    match (args.by_safety, args.json) {
        (false, false) if total == 0 => output::note("no tool matches"),
        (false, false) => {
            show(&tools);
            for tool in &tools {
                if let Some(missing) = tool["evidence"]["missing"].as_str() {
                    output::line(format_args!("{}: {missing}", shown("", &tool["name"])));
                }
            }
        }
        (false, true) => tools.iter().for_each(output::json),
        (true, json) => show_groups(tools, json),
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the calls of tools and servers, and what tools there are.
fn show_stats(stats: &Value, as_json: bool) {
    if as_json {
        return output::json(stats);
    }
    const CALLS: &str = "calls failed success_rate cached_rate mean_ms p99_ms";
    for (heading, member, name) in [
        ("tools", "tools", "tool=name"),
        ("\nservers", "servers", "server set"),
    ] {
        output::heading(heading);
        table::print(&format!("{name} {CALLS}"), status::items(&stats[member]));
    }
    output::heading("\ncatalogue");
    for (name, counts) in stats["catalogue"].as_object().into_iter().flatten() {
        output::line(format_args!(
            "{}: {}",
            name.replace('_', " "),
            shown("", counts)
        ));
    }
}

/// The groups of `--by-safety`: of each the level, its word in JSON and its heading.
const GROUPS: [&str; 3] = [
    "safe | read_only | Read-only: let the agent call freely",
    "moderate | mutating | Mutating: watch what changes",
    "dangerous | destructive | Destructive: confirm each call",
];

fn show_groups(mut tools: Vec<Value>, as_json: bool) {
    for (at, group) in GROUPS.into_iter().enumerate() {
        let [level, group, heading] = table::split(group);
        // a level that this version does not know is taken for the worst
        let is_of = |tool: &mut Value| tool["safety"] == level || level == "dangerous";
        let of_level: Vec<_> = tools.extract_if(.., is_of).collect();
        if as_json {
            for mut tool in of_level {
                tool["group"] = group.into();
                output::json(&tool);
            }
            continue;
        }
        if at > 0 {
            output::line("");
        }
        output::heading(heading);
        match of_level.is_empty() {
            true => output::line("none"),
            false => {
                let rows: Vec<_> = of_level.iter().map(row).collect();
                table::print("tool=name effect category confirm", &rows);
            }
        }
    }
}

/// Puts the verdicts under each other. What is recorded has a column where anything is.
pub(crate) fn show(tools: &[Value]) {
    let is_recorded = |tool: &Value| !matches!(tool["recorded"].as_str(), None | Some("none"));
    let any = tools.iter().any(is_recorded);
    let recorded = if any { " recorded" } else { "" };
    let columns = format!("tool=name effect safety cache retry confirm{recorded} source");
    let rows: Vec<Value> = tools.iter().map(row).collect();
    table::print(&columns, &rows);
}

/// Adds to the lifetime by how much it is served by now where it is learned, to the source the
/// number of rules over arguments that may change a call's plan, and whether only a rule may ask.
fn row(tool: &Value) -> Value {
    let mut row = tool.clone();
    if let Some(seconds) = tool["evidence"]["served_s"].as_f64() {
        row["cache"] = format!("learned:{seconds}s").into();
    }
    if tool["confirm"] == false && tool["rule_may_ask"] == true {
        row["confirm"] = "rule".into();
    }
    if let Some(rules) = tool["argument_rules"].as_u64() {
        let rules = counted(&rules, "rule");
        row["source"] = format!("{}, {rules}", shown("", &tool["source"])).into();
    }
    row
}
