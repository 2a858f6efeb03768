//! `callward discover`: lists the tools of servers now.

use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use crate::args::Discover;
use crate::commands::from::Place;
use crate::commands::status::items;
use crate::error::{AppError, Outcome};
use crate::output::{self, Tone, counted, took};
use crate::plain;
use crate::state_dir::StateDir;
use crate::table::shown;

pub(crate) async fn run(args: Discover, state: Option<&StateDir>) -> Outcome {
    let place = Place::open(&args.from, false, state).await?;
    let failed = place.patiently(discover(&place, &args)).await;
    place.end().await;
    Ok(ExitCode::from(u8::from(failed?)))
}

/// Lists all servers that are meant at once, and shows each outcome as it comes. Returns `true` if
/// one could not be listed.
async fn discover(place: &Place, args: &Discover) -> Result<bool, AppError> {
    let servers: Value = place.remote.ask(&["servers"], None).await?;
    let known = items(&servers)
        .into_iter()
        .filter_map(|it| it["id"].as_str());
    let known: Vec<&str> = known.collect();
    let wanted = args.server.iter().map(|id| id.as_str());
    let wanted: Vec<&str> = wanted.collect();
    if let Some(unknown) = wanted.iter().find(|id| !known.contains(id)) {
        let known = known.join("`, `");
        let text = format!("--server {unknown}: no such server; there are `{known}`");
        return Err(AppError::Usage(text));
    }
    let is_wanted = |id: &&str| wanted.is_empty() || wanted.contains(id);
    // what is started for this command is listed by that
    let order = place.own.is_none().then(|| "{}".into());
    let mut running: FuturesUnordered<_> = known
        .into_iter()
        .filter(is_wanted)
        .map(async |id| {
            let path = ["servers", id, "discover"];
            let outcome = place.remote.ask(&path, order.clone());
            let failed = |error: AppError| json!({ "server": id, "error": error.to_string() });
            outcome.await.unwrap_or_else(failed)
        })
        .collect();
    let mut failed = false;
    while let Some(outcome) = running.next().await {
        failed |= !outcome["error"].is_null();
        match args.json {
            true => output::json(&outcome),
            false => show(&outcome),
        }
    }
    Ok(failed)
}

/// How many names of new, changed or removed tools are shown.
const NAMED: usize = 8;

fn show(outcome: &Value) {
    let server = shown("", &outcome["server"]);
    if let Some(error) = outcome["error"].as_str() {
        let line = format!("{server}: not listed: {}", plain::line(error));
        return output::line(output::toned(line, Tone::Bad));
    }
    let listed = outcome["listed"].as_u64().unwrap_or_default();
    let time = Duration::from_millis(outcome["duration_ms"].as_u64().unwrap_or_default());
    let counts = ["added", "changed", "removed", "refused", "held"];
    let counts = counts.map(|kind| format!("{} {kind}", items(&outcome[kind]).len()));
    output::line(format_args!(
        "{server} of {}: {} in {}: {}",
        shown("", &outcome["set"]),
        counted(&listed, "tool"),
        took(time),
        counts.join(", ")
    ));
    for kind in ["added", "changed", "removed"] {
        let tools = items(&outcome[kind]);
        let named = tools.iter().take(NAMED).map(|tool| shown("", tool));
        let mut named: Vec<_> = named.collect();
        if tools.len() > NAMED {
            named.push(format!("and {} more", tools.len() - NAMED));
        }
        if !named.is_empty() {
            output::line(format_args!("  {kind:9}{}", named.join(", ")));
        }
    }
    for kind in ["refused", "held"] {
        for tool in items(&outcome[kind]) {
            let kind = output::toned(format!("{kind:9}"), Tone::Doubtful);
            let (tool, reason) = (shown("", &tool["tool"]), shown("", &tool["reason"]));
            output::line(format_args!("  {kind}{tool}: {reason}"));
        }
    }
    for warning in items(&outcome["warnings"]) {
        let severity = shown("", &warning["severity"]);
        let tone = match &*severity {
            "error" => Tone::Bad,
            _ => Tone::Doubtful,
        };
        let severity = output::toned(format!("{severity:9}"), tone);
        output::line(format_args!(
            "  {severity}{}",
            shown("", &warning["message"])
        ));
    }
}
