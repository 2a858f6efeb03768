//! `tollgate explain`: why a tool's calls are treated as they are.

use std::process::ExitCode;

use crate::args::Explain;
use crate::commands::from::Place;
use crate::error::Outcome;
use crate::output::Screen;

pub(crate) async fn run(args: Explain, screen: &Screen) -> Outcome {
    let place = Place::find(&args.from).await?;
    let shown = place.explain(&args.tool).await.map(|explanation| {
        if args.json {
            screen.json(&explanation);
        } else {
            screen.out(explanation.text.trim_end());
        }
    });
    place.end().await;
    shown?;
    Ok(ExitCode::SUCCESS)
}
