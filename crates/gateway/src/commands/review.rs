//! `callward review`: changed tools that wait for approval, and what calls suggest.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::{Review, ReviewCommand};
use crate::commands::status::items;
use crate::error::{AppError, Outcome};
use crate::output::{self, Tone};
use crate::state_dir::StateDir;
use crate::{api, plain};

pub(crate) async fn run(args: Review, state: Option<&StateDir>) -> Outcome {
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    let json = args.gateway.json;
    let order = match args.command {
        Some(ReviewCommand::Accept { ids }) => json!({ "accept": ids }),
        command => {
            let found: Value = remote.ask(&["review"], None).await?;
            let held = items(&found["held"]);
            let meant = match command {
                Some(ReviewCommand::Approve { all: true, .. }) => held,
                Some(ReviewCommand::Approve { tools, .. }) => chosen(&held, &tools)?,
                _ => {
                    list(&found, json);
                    return Ok(ExitCode::SUCCESS);
                }
            };
            let each = meant.iter();
            let each = each
                .map(|it| json!({ "set": it["set"], "tool": it["tool"], "digest": it["digest"] }));
            json!({ "approve": each.collect::<Vec<_>>() })
        }
    };
    let order = order.to_string();
    let results: Value = remote.ask(&["review"], Some(order.into())).await?;
    let mut failed = false;
    for result in items(&results) {
        let error = result["error"].as_str();
        failed |= error.is_some();
        let of = match (result["set"].as_str(), &result["id"]) {
            (None, id) => plain::line(id.as_str().unwrap_or_default()),
            _ => named(result),
        };
        match error {
            _ if json => {}
            Some(error) => output::error(&format_args!("{of}: {}", plain::line(error))),
            None if result["id"].is_string() => {
                output::line(format_args!("{} is accepted", suggestion(result)));
            }
            None => output::line(format_args!("{of} is approved")),
        }
    }
    if json {
        output::json(&results);
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// Shows what is held and what is suggested.
fn list(found: &Value, json: bool) {
    let [held, suggested] = ["held", "suggestions"].map(|name| items(&found[name]));
    match json {
        true => output::json(found),
        false if held.is_empty() && suggested.is_empty() => {
            output::note("no tool is held for review, and nothing is suggested");
        }
        false => {
            held.iter().for_each(|held| show(held));
            for it in suggested {
                let part = |name: &str| plain::line(it[name].as_str().unwrap_or_default());
                let id = output::toned(part("id"), Tone::Doubtful);
                output::line(format_args!("{id}  {}", suggestion(it)));
                output::line(format_args!("  {}", part("evidence")));
            }
        }
    }
}

/// What a suggestion changes.
fn suggestion(it: &Value) -> String {
    let part = |name: &str| plain::line(it[name].as_str().unwrap_or_default());
    let (change, from, to) = (part("change"), part("from"), part("to"));
    format!("{}: {change} {from} -> {to}", named(it))
}

/// Finds what is named `SET.TOOL` or `SET.TOOL@DIGEST`.
fn chosen<'a>(held: &[&'a Value], tools: &[String]) -> Result<Vec<&'a Value>, AppError> {
    let mut chosen = Vec::new();
    for wanted in tools {
        let is_meant = |held: &&&Value| {
            let (set, tool) = (held["set"].as_str(), held["tool"].as_str());
            let own = format!("{}.{}", set.unwrap_or_default(), tool.unwrap_or_default());
            let rest = wanted.strip_prefix(&*own);
            let digest = held["digest"].as_str().unwrap_or_default();
            rest.is_some_and(|rest| match rest.strip_prefix('@') {
                Some(seen) => seen.len() >= FEWEST_DIGITS && digest.starts_with(seen),
                None => rest.is_empty(),
            })
        };
        match &held.iter().filter(is_meant).collect::<Vec<_>>()[..] {
            [one] => chosen.push(**one),
            [] => {
                return Err(AppError::Usage(format!(
                    "no tool that is held is {wanted:?}: expected one as `callward review` lists it"
                )));
            }
            _ => {
                return Err(AppError::Usage(format!(
                    "servers list several definitions of {wanted:?}: add the digest of one, as \
                     `callward review` lists it"
                )));
            }
        }
    }
    Ok(chosen)
}

/// How many digits of a digest are shown, and the fewest that name one.
const SHOWN_DIGITS: usize = 12;
const FEWEST_DIGITS: usize = 6;

fn named(held: &Value) -> String {
    let part = |name: &str| plain::line(held[name].as_str().unwrap_or_default());
    format!("{}.{}", part("set"), part("tool"))
}

/// Shows a tool with all its differences: what a person does not see, they cannot approve.
fn show(held: &Value) {
    let part = |name: &str| plain::line(held[name].as_str().unwrap_or_default());
    let digest: String = part("digest").chars().take(SHOWN_DIGITS).collect();
    let tool = output::toned(format!("{}@{digest}", named(held)), Tone::Doubtful);
    output::line(format_args!(
        "{tool}  of {}: {}",
        part("server"),
        part("reason")
    ));
    for change in items(&held["changes"]) {
        let text = plain::lines(change["text"].as_str().unwrap_or_default());
        output::line(format_args!("  {}", text.replace('\n', "\n    ")));
    }
}
