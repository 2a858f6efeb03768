//! `callward review`: changed tools that wait for approval.

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
    let held: Value = remote.ask(&["review"], None).await?;
    let held = items(&held);
    let Some(ReviewCommand::Approve { tools, all }) = args.command else {
        match json {
            true => output::json(&held),
            false if held.is_empty() => output::note("no tool is held for review"),
            false => held.iter().for_each(|held| show(held)),
        }
        return Ok(ExitCode::SUCCESS);
    };
    let meant = match all {
        true => held,
        false => chosen(&held, &tools)?,
    };
    let approve: Vec<_> = meant
        .iter()
        .map(|held| json!({ "set": held["set"], "tool": held["tool"], "digest": held["digest"] }))
        .collect();
    let order = json!({ "approve": approve }).to_string();
    let results: Value = remote.ask(&["review"], Some(order.into())).await?;
    let mut failed = false;
    for result in items(&results) {
        let (tool, error) = (named(result), result["error"].as_str());
        failed |= error.is_some();
        match error {
            _ if json => {}
            Some(error) => output::error(&format_args!("{tool}: {}", plain::line(error))),
            None => output::line(format_args!("{tool} is approved")),
        }
    }
    if json {
        output::json(&results);
    }
    Ok(ExitCode::from(u8::from(failed)))
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
