//! `callward cache`: what the cache of a running gateway did, and purging it.

use serde_json::{Value, json};

use super::ask::{ask, cell, count, duration, items, millis, text};
use crate::args::{Cache, CacheCommand};
use crate::config::show_size;
use crate::error::Outcome;
use crate::output::{self, Cell, Column, Table};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Cache, state: Option<&StateDir>) -> Outcome {
    match args.command {
        None => ask(&["cache"], None, &args.gateway, state, show).await,
        Some(CacheCommand::Purge(what)) => {
            let path = ["cache", "purge"];
            ask(&path, Some(json!(what)), &args.gateway, state, purged).await
        }
    }
}

const COLUMNS: [Column<Value>; 11] = [
    ("tool", |tool| Cell::plain(name(tool))),
    ("hits", |tool| cell(&tool["hits"])),
    ("joined", |tool| cell(&tool["joined"])),
    ("stale", |tool| {
        let rescued = json!({ "rescued": tool["rescued"] });
        let stale = count(&tool["stale"]) + count(&tool["rescued"]);
        Cell::warn(with_reasons(stale, &rescued), stale > 0)
    }),
    ("misses", |tool| cell(&tool["misses"])),
    ("hit rate", |tool| Cell::share(tool["hit_rate"].as_f64())),
    ("bypassed", |tool| {
        Cell::plain(with_reasons(count(&tool["bypassed"]), &tool["bypasses"]))
    }),
    ("writes", |tool| cell(&tool["invalidations"])),
    ("stored", |tool| cell(&tool["stored"])),
    ("refused", |tool| {
        let refused = parts(&tool["refusals"]).map(|(_, value)| count(value));
        Cell::plain(with_reasons(refused.sum(), &tool["refusals"]))
    }),
    ("saved", |tool| match tool["saved_ms"].as_f64() {
        Some(0.0) => Cell::plain("0"),
        _ => millis(&tool["saved_ms"]),
    }),
];

fn show(answer: &Value) {
    let tools = items(&answer["tools"]);
    let mut total = answer["total"].clone();
    total["name"] = "all".into();
    let rows = tools.iter().chain([&total]);
    output::table(&Table::of(&COLUMNS, rows));
    output::line("");
    output::line(format_args!(
        "kept now: {} entries, {}; evicted to make space: {}",
        total["entries"],
        show_size(count(&total["bytes"])),
        total["evicted"]
    ));
    for state in items(&answer["unsettled"]) {
        output::line(unsettled(state));
    }
    for tool in tools.iter().filter(|tool| !tool["evidence"].is_null()) {
        let evidence = &tool["evidence"];
        let evidence = match evidence["missing"].as_str() {
            Some(missing) => missing.to_owned(),
            None => format!(
                "served for up to {} s: {} repeats, {} different",
                text(&evidence["served_s"]),
                evidence["repeats"],
                evidence["different"]
            ),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        output::line(format_args!("{name}: {evidence}"));
    }
}

fn name(tool: &Value) -> String {
    match tool["name"].as_str() {
        Some(name) => name.to_owned(),
        None => format!("{}.{} (gone)", text(&tool["set"]), text(&tool["tool"])),
    }
}

fn unsettled(of: &Value) -> String {
    format!(
        "unsettled for {}, and for {} more: {}; a call of {}.{} may still land ({})",
        duration(&of["age_ms"]),
        duration(&of["left_ms"]),
        text(&of["state"]),
        text(&of["set"]),
        text(&of["tool"]),
        text(&of["reason"])
    )
}

/// Returns the members of an object; nothing has none.
fn parts(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.as_object().into_iter().flatten()
}

/// A number, with its parts that are not 0.
fn with_reasons(all: u64, reasons: &Value) -> String {
    let met = parts(reasons).filter(|(_, value)| count(value) > 0);
    let met: Vec<String> = met
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    match met.is_empty() {
        true => all.to_string(),
        false => format!("{all} ({})", met.join(", ")),
    }
}

fn purged(answer: &Value) {
    let (kind, name) = parts(&answer["purged"])
        .next()
        .map_or(("all", String::new()), |(kind, name)| (kind, text(name)));
    let purged = match (kind, answer["set"].as_str()) {
        ("principal", _) => format!("what was kept for {name:?} alone"),
        ("server", Some(set)) => {
            format!("what was read from replica set `{set}`, which `{name}` is in")
        }
        ("tag", _) => {
            format!(
                "results of tools with tag {name:?}, and what was read from scopes of that name"
            )
        }
        ("tool", _) => format!("results of `{name}`"),
        _ => "everything".into(),
    };
    output::line(format_args!("forgotten: {purged}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_were_met_are_named() {
        let reasons = json!({"plan": 2, "settling": 0, "writing": 1});
        assert_eq!(with_reasons(3, &reasons), "3 (plan 2, writing 1)");
        assert_eq!(with_reasons(0, &Value::Null), "0");
    }
}
