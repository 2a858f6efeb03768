//! `callward explain`: what would happen to a call, or to a tool's calls, and why.

use std::process::ExitCode;

use crate::args::Explain;
use crate::commands::from::{Place, check_arguments};
use crate::error::Outcome;
use crate::output::Screen;
use crate::plain;
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Explain, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    if let Some(arguments) = &args.arguments {
        check_arguments(arguments)?;
    }
    let place = Place::find(&args.from, state, screen).await?;
    let shown = place
        .explain(&args.tool, args.arguments)
        .await
        .map(|explanation| {
            if args.json {
                screen.json(&explanation);
            } else {
                screen.out(plain::lines(
                    explanation["text"].as_str().unwrap_or_default().trim_end(),
                ));
            }
        });
    if shown.is_err() {
        place.tell_missing(screen).await;
    }
    place.end().await;
    shown?;
    Ok(ExitCode::SUCCESS)
}
