//! `tollgate call`: one call, its result, and what became of it.

use std::process::ExitCode;

use crate::args::Call;
use crate::commands::from::{Place, check_arguments};
use crate::error::Outcome;
use crate::output::{Screen, took};
use crate::view::CallView;

pub(crate) async fn run(args: Call, screen: &Screen) -> Outcome {
    check_arguments(&args.arguments)?;
    let place = Place::find(&args.from).await?;
    let answer = place.call(&args.tool, args.arguments).await;
    let succeeded = answer.map(|view| show(&view, args.json, screen));
    place.end().await;
    Ok(if succeeded? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows result and summary; `false` if the tool reports an error, or the call failed.
fn show(view: &CallView, json: bool, screen: &Screen) -> bool {
    let output = view.output();
    match (&output, &view.result) {
        (Some(_), Some(raw)) if json => screen.out(raw.get()),
        (Some(output), _) => screen.out(output.to_text()),
        _ => {}
    }
    if let Some(error) = &view.error {
        screen.error(&error.message);
    }
    screen.note(summary(view));
    output.is_some_and(|output| !output.is_error())
}

/// One line: effect, server, cache, attempts, time.
fn summary(view: &CallView) -> String {
    format!(
        "{}  server {}  cache {}{}  attempts {}  {}",
        view.effect,
        view.server.as_deref().unwrap_or("-"),
        view.cache,
        view.cache_reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(" ({reason})")),
        view.attempts,
        took(view.took()),
    )
}
