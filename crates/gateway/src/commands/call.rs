//! `callward call`: one call, its result and its outcome.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use callward::Trail;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::Call;
use crate::commands::from::{Place, check_arguments};
use crate::commands::status::items;
use crate::error::Outcome;
use crate::output::{self, took};
use crate::state_dir::StateDir;
use crate::table::shown;

pub(crate) async fn run(args: Call, state: Option<&StateDir>) -> Outcome {
    check_arguments(&args.arguments)?;
    let place = Place::find(&args.from, true, state).await?;
    let (arguments, server) = (args.arguments.clone().into(), args.server.clone());
    let answer = place.remote.call(&args.tool, arguments, server).await;
    let succeeded = answer.map(|(outcome, result)| show(&outcome, result.as_deref(), &args));
    place.end().await;
    Ok(ExitCode::from(u8::from(!succeeded?)))
}

/// Shows result and summary; `false` if the tool reports an error, or the call failed.
fn show(outcome: &Value, raw: Option<&RawValue>, args: &Call) -> bool {
    let (result, error) = (&outcome["result"], &outcome["error"]);
    match raw {
        Some(raw) if args.json => output::line(raw.get()),
        Some(raw) => content(raw).iter().for_each(|text| output::text(text)),
        None => {}
    }
    if !error.is_null() {
        if args.json {
            output::json(&json!({ "error": error }));
        }
        output::error(&shown("", &error["message"]));
        if let Some(advice) = error["advice"].as_str() {
            output::note(advice);
        }
        tell(error);
    }
    if args.explain
        && let Ok(trail) = Trail::deserialize(&outcome["trail"])
    {
        output::note(trail);
    }
    output::note(summary(outcome));
    raw.is_some() && result["isError"] != true
}

/// Returns the blocks of a result: text as it is, and of other blocks type, media type and address.
/// A result without blocks is shown by its structured content, as it was written.
fn content(result: &RawValue) -> Vec<String> {
    let members: HashMap<String, &RawValue> =
        serde_json::from_str(result.get()).unwrap_or_default();
    let of = |name| members.get(name).map_or("null", |raw| raw.get());
    let blocks: Value = serde_json::from_str(of("content")).unwrap_or_default();
    let (blocks, structured) = (items(&blocks), of("structuredContent"));
    if blocks.is_empty() && structured != "null" {
        return vec![structured.to_owned()];
    }
    blocks.into_iter().map(block).collect()
}

/// Returns the text of a block of content, or what else it is.
pub(super) fn block(block: &Value) -> String {
    let of = |paths: &str| -> Vec<&str> {
        let found = paths
            .split(' ')
            .filter_map(|at| block.pointer(at)?.as_str());
        found.collect()
    };
    match of("/text /resource/text")[..] {
        [text, ..] => text.to_owned(),
        [] => {
            let what = of("/type /mimeType /uri /resource/mimeType /resource/uri");
            format!("[{}: `--json` prints it]", what.join(" "))
        }
    }
}

/// Shows the attempts, and which tool shows the effect of a call without an answer.
fn tell(error: &Value) {
    for (number, attempt) in (1..).zip(items(&error["history"])) {
        let [server, kind, delivery, message] =
            ["server", "kind", "delivery", "message"].map(|name| shown("", &attempt[name]));
        let pause = shown("_ms", &attempt["pauseMs"]);
        output::note(format_args!(
            "attempt {number}  server {server}  after {pause}  {kind}, delivery {delivery}: {message}"
        ));
    }
    let outcome = &error["outcome"];
    if !outcome.is_null() {
        let verifier = outcome["verifyWith"].as_str();
        output::note(format_args!(
            "it may have run  sent {} ago  {} bytes of arguments{}",
            shown("_ms", &outcome["sentMsAgo"]),
            outcome["argumentBytes"],
            verifier.map_or_else(String::new, |tool| format!("  check with {tool}")),
        ));
    }
}

/// One line: effect, server, cache, attempts, what else was done, time.
fn summary(outcome: &Value) -> String {
    let of = |name: &str| shown("", &outcome[name]);
    let given = |name: &str, form: fn(&str) -> String| {
        let given = outcome[name].as_str();
        given.map_or_else(String::new, form)
    };
    let guarded = outcome["guarded"] == true;
    let micros = outcome["took_us"].as_u64().unwrap_or_default();
    format!(
        "{}  server {}  cache {}{}  attempts {}{}{}  {}",
        of("effect"),
        of("server"),
        of("cache"),
        given("cache_reason", |reason| format!(" ({reason})")),
        of("attempts"),
        given("hedge", |hedge| format!("  hedge {hedge}")),
        if guarded { "  loop guard" } else { "" },
        took(Duration::from_micros(micros)),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

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
            let result = to_raw_value(&result).unwrap();
            assert_eq!(content(&result), expected, "{result}");
        }
        let exact = r#"{"a":1.10,"b":123456789012345678901234567890}"#;
        let result = RawValue::from_string(format!(r#"{{"structuredContent":{exact}}}"#));
        assert_eq!(content(&result.unwrap()), [exact]);
    }
}
