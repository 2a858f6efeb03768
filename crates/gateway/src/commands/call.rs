//! `callward call`: one call, its result and its outcome.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Call;
use crate::commands::ask::{duration, items, text};
use crate::commands::from::{Place, Purpose, check_arguments};
use crate::error::Outcome;
use crate::output::{self, took};
use crate::state_dir::StateDir;
use crate::view::{CallView, trail};

pub(crate) async fn run(args: Call, state: Option<&StateDir>) -> Outcome {
    check_arguments(&args.arguments)?;
    let place = Place::find(&args.from, Purpose::Call, state).await?;
    let (arguments, server) = (args.arguments.clone(), args.server.clone());
    let answer = place.call(&args.tool, arguments, server).await;
    let succeeded = answer.map(|view| show(&view, &args));
    place.end().await;
    Ok(ExitCode::from(u8::from(!succeeded?)))
}

/// Shows result and summary; `false` if the tool reports an error, or the call failed.
fn show(view: &CallView, args: &Call) -> bool {
    let json = args.json;
    let output = view.output();
    match (&output, &view.result) {
        (Some(_), Some(raw)) if json => output::line(raw.get()),
        (Some(_), Some(raw)) => content(raw.get())
            .iter()
            .for_each(|text| output::text(text)),
        _ => {}
    }
    if let Some(error) = &view.error {
        if json {
            output::json(&json!({ "error": error }));
        }
        output::error(&text(&error["message"]));
        tell(error);
    }
    if args.explain
        && let Some(table) = trail::table(&view.trail)
    {
        output::note_table(&table);
    }
    output::note(summary(view));
    output.is_some_and(|output| !output.is_error())
}

/// Returns the blocks of a result: text as it is, and of other blocks type, media type and address.
/// A result without blocks is shown by its structured content.
fn content(result: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    let (blocks, structured) = (items(&result["content"]), &result["structuredContent"]);
    if blocks.is_empty() && !structured.is_null() {
        return vec![structured.to_string()];
    }
    let shown = blocks.iter().map(|block| {
        let of = |paths: &[&str]| -> Vec<&str> {
            let found = paths.iter().filter_map(|at| block.pointer(at)?.as_str());
            found.collect()
        };
        match of(&["/text", "/resource/text"])[..] {
            [text, ..] => text.to_owned(),
            [] => {
                let what = [
                    "/type",
                    "/mimeType",
                    "/uri",
                    "/resource/mimeType",
                    "/resource/uri",
                ];
                format!("[{}: `--json` prints it]", of(&what).join(" "))
            }
        }
    });
    shown.collect()
}

/// Shows the attempts, and which tool shows the effect of a call without an answer.
fn tell(error: &Value) {
    for (number, attempt) in (1..).zip(items(&error["history"])) {
        output::note(format_args!(
            "attempt {number}  server {}  after {}  {}, delivery {}: {}",
            text(&attempt["server"]),
            duration(&attempt["pauseMs"]),
            text(&attempt["kind"]),
            text(&attempt["delivery"]),
            text(&attempt["message"]),
        ));
    }
    let outcome = &error["outcome"];
    if !outcome.is_null() {
        let verifier = outcome["verifyWith"].as_str();
        output::note(format_args!(
            "it may have run  sent {} ago  {} bytes of arguments{}",
            duration(&outcome["sentMsAgo"]),
            outcome["argumentBytes"],
            verifier.map_or_else(String::new, |tool| format!("  check with {tool}")),
        ));
    }
}

/// One line: effect, server, cache, attempts, what else was done, time.
fn summary(view: &CallView) -> String {
    let hedge = view.hedge.as_ref();
    format!(
        "{}  server {}  cache {}{}  attempts {}{}{}  {}",
        view.effect,
        view.server.as_deref().unwrap_or("-"),
        view.cache,
        view.cache_reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(" ({reason})")),
        view.attempts,
        hedge.map_or_else(String::new, |hedge| format!("  hedge {hedge}")),
        if view.guarded { "  loop guard" } else { "" },
        took(view.took()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_shows_each_of_its_blocks() {
        for (result, expected) in [
            (
                json!({ "content": [{ "type": "text", "text": "a\nb" }] }),
                &["a\nb"][..],
            ),
            (
                json!({ "content": [
                    { "type": "image", "data": "AAAA", "mimeType": "image/png" },
                    { "type": "resource_link", "uri": "file:///a", "name": "a" },
                    { "type": "resource", "resource": { "uri": "file:///b", "text": "b" } },
                    { "type": "resource", "resource": { "uri": "file:///c", "blob": "AA==" } },
                ] }),
                &[
                    "[image image/png: `--json` prints it]",
                    "[resource_link file:///a: `--json` prints it]",
                    "b",
                    "[resource file:///c: `--json` prints it]",
                ],
            ),
            (
                json!({ "content": [], "structuredContent": { "a": 1 } }),
                &["{\"a\":1}"],
            ),
            (json!({ "content": [] }), &[]),
        ] {
            assert_eq!(content(&result.to_string()), expected, "{result}");
        }
    }
}
