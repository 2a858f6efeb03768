//! `callward prompts`, `resources`, `read` and `complete`: requests of methods other than
//! `tools/call`.

use std::process::ExitCode;

use callward::core::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::{Complete, Prompts, Read, Resources};
use crate::commands::from::{Place, check_arguments};
use crate::commands::status::items;
use crate::error::{AppError, Outcome};
use crate::output;
use crate::state_dir::StateDir;
use crate::table;

pub(crate) async fn prompts(args: Prompts, state: Option<&StateDir>) -> Outcome {
    let (method, params) = match &args.name {
        Some(name) => {
            check_arguments(&args.arguments)?;
            let arguments: Value = serde_json::from_str(&args.arguments).unwrap_or_default();
            let params = json!({"name": name, "arguments": arguments});
            (Method::GetPrompt, params)
        }
        None => (Method::ListPrompts, json!({})),
    };
    let place = Place::find(&args.from, true, state).await?;
    let answer = ask(&place, method, &params).await;
    place.end().await;
    let (result, raw) = answer?;
    if args.json {
        output::line(raw.get());
    } else if method == Method::ListPrompts {
        let prompts = items(&result["prompts"]);
        note_empty(prompts.is_empty());
        table::print("prompt=name title description", prompts);
    } else {
        for message in items(&result["messages"]) {
            output::heading(message["role"].as_str().unwrap_or("?"));
            blocks(&message["content"]);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn resources(args: Resources, state: Option<&StateDir>) -> Outcome {
    let place = Place::find(&args.from, true, state).await?;
    let mut answers = Vec::new();
    for method in [Method::ListResources, Method::ListTemplates] {
        answers.push(ask(&place, method, &json!({})).await);
    }
    place.end().await;
    let mut rows = Vec::new();
    for answer in answers {
        let (result, raw) = answer?;
        if args.json {
            output::line(raw.get());
        }
        for list in ["resources", "resourceTemplates"] {
            rows.extend(items(&result[list]).into_iter().cloned());
        }
    }
    for row in &mut rows {
        if row["uri"].is_null() {
            row["uri"] = row["uriTemplate"].clone();
        }
    }
    if !args.json {
        note_empty(rows.is_empty());
        table::print("uri name type=mimeType", &rows);
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn read(args: Read, state: Option<&StateDir>) -> Outcome {
    let place = Place::find(&args.from, true, state).await?;
    let answer = ask(&place, Method::ReadResource, &json!({"uri": args.uri})).await;
    place.end().await;
    let (result, raw) = answer?;
    match args.json {
        true => output::line(raw.get()),
        false => blocks(&result["contents"]),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn complete(args: Complete, state: Option<&StateDir>) -> Outcome {
    let place = Place::find(&args.from, true, state).await?;
    // the name of a prompt has no colon, and a template of URIs begins with a scheme
    let about = match args.about.contains(':') {
        true => json!({"type": "ref/resource", "uri": args.about}),
        false => json!({"type": "ref/prompt", "name": args.about}),
    };
    let argument = json!({"name": args.argument, "value": args.value});
    let params = json!({"ref": about, "argument": argument});
    let answer = ask(&place, Method::Complete, &params).await;
    place.end().await;
    let (result, raw) = answer?;
    match args.json {
        true => output::line(raw.get()),
        false => {
            for value in items(&result["completion"]["values"]) {
                output::text(value.as_str().unwrap_or_default());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says why nothing may be listed.
fn note_empty(is_empty: bool) {
    if is_empty {
        output::note(
            "nothing is listed: the servers have none, do not answer, or rules of `[[authorize]]` hide \
             it from the principal `anonymous`, which asks here",
        );
    }
}

/// Returns the result, and its text.
async fn ask(
    place: &Place,
    method: Method,
    params: &Value,
) -> Result<(Value, Box<RawValue>), AppError> {
    let body = json!({"method": method, "params": params}).to_string();
    let raw: Box<RawValue> = place.remote.ask(&["requests"], Some(body.into())).await?;
    let result = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok((result, raw))
}

/// Shows blocks of content, or a single one: text as it is, and what else there is by its type.
fn blocks(content: &Value) {
    for block in items(content) {
        output::text(&super::call::block(block));
    }
}
