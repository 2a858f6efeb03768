//! `callward review`: changed tools that wait for approval, and what calls suggest.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::{Approve, From, Review, ReviewCommand};
use crate::commands::from::Place;
use crate::commands::status::items;
use crate::error::{AppError, Outcome};
use crate::output::{self, Tone};
use crate::state_dir::StateDir;
use crate::{api, plain};

pub(crate) async fn run(args: Review, state: Option<&StateDir>) -> Outcome {
    let (gateway, json) = (&args.gateway, args.gateway.json);
    let (mut command, mut keeps) = (args.wrapped, false);
    if let Some(ReviewCommand::Approve(approve)) = &args.command {
        (command, keeps) = (approve.wrapped.clone(), true);
    }
    let from = From {
        url: gateway.url.clone(),
        config: gateway.config.clone(),
        command,
        keeps,
    };
    let asked = match from.command.is_empty() {
        true => api::gateway(gateway, state).await,
        false => Err(AppError::Remote(String::new())),
    };
    let place = match asked {
        Ok((remote, _)) => Place { remote, own: None },
        // no gateway can be asked
        Err(AppError::Remote(_)) if gateway.config.is_some() || !from.command.is_empty() => {
            Place::find(&from, false, state).await?
        }
        Err(error) => return Err(error),
    };
    let done = review(&place, args.command, json).await;
    place.end().await;
    done
}

/// Shows what is held and suggested, or approves or accepts it.
async fn review(place: &Place, command: Option<ReviewCommand>, json: bool) -> Outcome {
    let order = match command {
        Some(ReviewCommand::Accept { ids }) => json!({ "accept": ids }),
        command => {
            let found: Value = place.remote.ask(&["review"], None).await?;
            let held = items(&found["held"]);
            let meant = match command {
                Some(ReviewCommand::Approve(Approve { all: true, .. })) => held,
                Some(ReviewCommand::Approve(Approve { tools, .. })) => chosen(&held, &tools)?,
                _ => {
                    list(&found, json);
                    return Ok(ExitCode::SUCCESS);
                }
            };
            // a server that was just started may list something else than before
            if place.own.is_some() && !json {
                meant.iter().for_each(|held| show(held));
            }
            let each = meant.iter();
            let each = each
                .map(|it| json!({ "set": it["set"], "tool": it["tool"], "digest": it["digest"] }));
            json!({ "approve": each.collect::<Vec<_>>() })
        }
    };
    let order = order.to_string();
    let results: Value = place.remote.ask(&["review"], Some(order.into())).await?;
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

/// Finds what is named `SET.TOOL`, or as clients see it, with or without `@DIGEST`.
fn chosen<'a>(held: &[&'a Value], tools: &[String]) -> Result<Vec<&'a Value>, AppError> {
    let mut chosen = Vec::new();
    for wanted in tools {
        let named = held.iter().filter_map(|held| {
            let names = [&*named(held), held["name"].as_str()?];
            let rest = names.iter().find_map(|name| wanted.strip_prefix(name))?;
            (rest.is_empty() || rest.starts_with('@')).then_some((*held, rest))
        });
        let named: Vec<_> = named.collect();
        let is_seen = |(held, rest): &&(&Value, &str)| {
            let digest = held["digest"].as_str().unwrap_or_default();
            let seen = rest.strip_prefix('@');
            seen.is_none_or(|seen| seen.len() >= FEWEST_DIGITS && digest.starts_with(seen))
        };
        let meant: Vec<_> = named.iter().filter(is_seen).collect();
        let digests: Vec<_> = named.iter().map(|(held, _)| shown_name(held)).collect();
        let digests = digests.join(", ");
        let why = match (&meant[..], &named[..]) {
            ([(one, _)], _) => {
                chosen.push(*one);
                continue;
            }
            (_, []) => format!(
                "no tool that is held is {wanted:?}: expected one as `callward review` lists it"
            ),
            ([], _) => format!(
                "{wanted:?} is held with another digest, {digests}: look at its differences again"
            ),
            _ => format!("several definitions of {wanted:?} are held: name one of {digests}"),
        };
        return Err(AppError::Usage(why));
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

/// Names a definition as the arguments of `approve` do.
fn shown_name(held: &Value) -> String {
    let digest = held["digest"].as_str().unwrap_or_default().chars();
    let digest: String = digest.take(SHOWN_DIGITS).collect();
    format!("{}@{}", named(held), plain::line(&digest))
}

/// Shows a tool with all its differences: what a person does not see, they cannot approve.
fn show(held: &Value) {
    let part = |name: &str| plain::line(held[name].as_str().unwrap_or_default());
    let tool = output::toned(shown_name(held), Tone::Doubtful);
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
