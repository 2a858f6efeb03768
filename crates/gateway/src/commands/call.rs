//! `callward call`: one call, its result and its outcome.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Call;
use crate::commands::ask::{items, millis, text};
use crate::commands::from::{Place, Purpose, check_arguments};
use crate::error::Outcome;
use crate::output::{Screen, took};
use crate::state_dir::StateDir;
use crate::view::{CallView, trail};

pub(crate) async fn run(args: Call, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    check_arguments(&args.arguments)?;
    let place = Place::find(&args.from, Purpose::Call, state, screen).await?;
    let (arguments, server) = (args.arguments.clone(), args.server.clone());
    let answer = place.call(&args.tool, arguments, server).await;
    let succeeded = answer.map(|view| show(&view, &args, screen));
    place.end().await;
    Ok(if succeeded? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows result and summary; `false` if the tool reports an error, or the call failed.
fn show(view: &CallView, args: &Call, screen: &Screen) -> bool {
    let json = args.json;
    let output = view.output();
    match (&output, &view.result) {
        (Some(_), Some(raw)) if json => screen.out(raw.get()),
        (Some(output), _) => screen.out(output.to_text()),
        _ => {}
    }
    if let Some(error) = &view.error {
        if json {
            screen.json(&json!({ "error": error }));
        }
        screen.error(&text(&error["message"]));
        tell(error, screen);
    }
    if args.explain
        && let Some(table) = trail::table(&view.trail)
    {
        screen.note_table(&table);
    }
    screen.note(summary(view));
    output.is_some_and(|output| !output.is_error())
}

/// Shows the attempts, and how to find out whether a call without an answer took effect.
fn tell(error: &Value, screen: &Screen) {
    for (number, attempt) in (1..).zip(items(&error["history"])) {
        screen.note(format_args!(
            "attempt {number}  server {}  after {}  {}, delivery {}: {}",
            text(&attempt["server"]),
            millis(&attempt["pause_ms"]),
            text(&attempt["kind"]),
            text(&attempt["delivery"]),
            text(&attempt["message"]),
        ));
    }
    let outcome = &error["outcome"];
    if !outcome.is_null() {
        let verifier = outcome["verify_with"].as_str();
        screen.note(format_args!(
            "it may have run  sent {} ago  {} bytes of arguments{}",
            millis(&outcome["sent_ms_ago"]),
            outcome["argument_bytes"],
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
