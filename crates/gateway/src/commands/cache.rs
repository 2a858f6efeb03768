//! `callward cache`: what the cache of a running gateway did, and purging it.

use serde_json::{Map, Value, json};

use super::ask::{Question, ask, cell, count, items, millis, table, text};
use crate::api::cache::Purge;
use crate::args::{Cache, CacheCommand, PurgeArgs};
use crate::config::show_size;
use crate::error::{AppError, Outcome};
use crate::output::{Cell, Screen};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Cache, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let (question, show): (_, fn(&Value, &Screen)) = match args.command {
        None => (Question::Get("cache"), show),
        Some(CacheCommand::Purge(what)) => {
            let path = ["cache", "purge"].map(ToOwned::to_owned);
            (Question::Post(path.into(), json!(purge(what)?)), purged)
        }
    };
    let show = (!args.json).then_some(show);
    ask(question, &args.gateway, state, show, screen).await
}

fn show(answer: &Value, screen: &Screen) {
    let headings = [
        "tool", "hits", "joined", "stale", "misses", "hit rate", "bypassed", "writes", "stored",
        "refused", "saved",
    ];
    let tools = items(&answer["tools"]);
    let total = &answer["total"];
    let mut shown = table(&headings, tools, |tool| row(&name(tool), tool));
    shown.row(row("all", total));
    screen.table(&shown);
    screen.out("");
    screen.out(format_args!(
        "kept now: {} entries, {}; evicted to make space: {}",
        total["entries"],
        show_size(count(&total["bytes"])),
        total["evicted"]
    ));
    for state in items(&answer["unsettled"]) {
        screen.out(unsettled(state));
    }
    for tool in tools.iter().filter(|tool| !tool["evidence"].is_null()) {
        let evidence = &tool["evidence"];
        let evidence = evidence["missing"].as_str().map_or_else(
            || {
                format!(
                    "served for up to {} s: {} repeats, {} different",
                    text(&evidence["served_s"]),
                    evidence["repeats"],
                    evidence["different"]
                )
            },
            ToOwned::to_owned,
        );
        let name = tool["name"].as_str().unwrap_or_default();
        screen.out(format_args!("{name}: {evidence}"));
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
        millis(&of["age_ms"]),
        millis(&of["left_ms"]),
        text(&of["state"]),
        text(&of["set"]),
        text(&of["tool"]),
        text(&of["reason"])
    )
}

fn row(name: &str, counts: &Value) -> Vec<Cell> {
    let none = Map::new();
    let reasons = |key: &str| counts[key].as_object().unwrap_or(&none);
    let refused = reasons("refusals").values().map(count).sum();
    let rescued = count(&counts["rescued"]);
    let stale = count(&counts["stale"]) + rescued;
    let rescued = Map::from_iter([("rescued".to_owned(), rescued.into())]);
    let saved = match counts["saved_ms"].as_f64() {
        Some(0.0) => "0".into(),
        _ => millis(&counts["saved_ms"]),
    };
    vec![
        Cell::plain(name),
        cell(&counts["hits"]),
        cell(&counts["joined"]),
        Cell::warn(with_reasons(stale, &rescued), stale > 0),
        cell(&counts["misses"]),
        Cell::share(counts["hit_rate"].as_f64()),
        Cell::plain(with_reasons(
            count(&counts["bypassed"]),
            reasons("bypasses"),
        )),
        cell(&counts["invalidations"]),
        cell(&counts["stored"]),
        Cell::plain(with_reasons(refused, reasons("refusals"))),
        Cell::plain(saved),
    ]
}

/// A number, with its parts that are not 0.
fn with_reasons(all: u64, reasons: &Map<String, Value>) -> String {
    let met = reasons.iter().filter(|(_, value)| count(value) > 0);
    let met: Vec<String> = met
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    if met.is_empty() {
        return all.to_string();
    }
    format!("{all} ({})", met.join(", "))
}

/// The command line lets exactly one through.
fn purge(args: PurgeArgs) -> Result<Purge, AppError> {
    let named = [
        args.tool.map(Purge::Tool),
        args.server.map(Purge::Server),
        args.tag.map(Purge::Tag),
        args.principal.map(Purge::Principal),
        args.all.then_some(Purge::All(true)),
    ];
    named.into_iter().flatten().next().ok_or_else(|| {
        AppError::Usage("name what to forget: --all, --tool, --server, --tag or --principal".into())
    })
}

fn purged(answer: &Value, screen: &Screen) {
    let what = answer["purged"].as_object();
    let (kind, name) = what
        .and_then(|what| what.iter().next())
        .map_or(("all", String::new()), |(kind, name)| {
            (kind.as_str(), text(name))
        });
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
    screen.out(format_args!("forgotten: {purged}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_were_met_are_named() {
        let reasons = json!({"plan": 2, "settling": 0, "writing": 1});
        let reasons = reasons.as_object().unwrap();
        assert_eq!(with_reasons(3, reasons), "3 (plan 2, writing 1)");
        assert_eq!(with_reasons(0, &Map::new()), "0");
    }

    #[test]
    fn unsettled_state_is_shown_with_its_cause() {
        let state = json!({
            "state": "`order:{id}`", "set": "shop", "tool": "ship", "reason": "outcome_unknown",
            "age_ms": 250.0, "left_ms": 1750.0,
        });
        assert_eq!(
            unsettled(&state),
            "unsettled for 250.0 ms, and for 1.75 s more: `order:{id}`; a call of shop.ship may still \
             land (outcome_unknown)"
        );
    }
}
