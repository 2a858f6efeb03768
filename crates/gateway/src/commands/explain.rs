//! `callward explain`: what would happen to a call, or to a tool's calls, and why.

use std::process::ExitCode;

use serde_json::Value;

use crate::args::Explain;
use crate::commands::from::{Place, check_arguments};
use crate::error::Outcome;
use crate::state_dir::StateDir;
use crate::{output, plain};

pub(crate) async fn run(args: Explain, state: Option<&StateDir>) -> Outcome {
    if let Some(arguments) = &args.arguments {
        check_arguments(arguments)?;
    }
    let place = Place::find(&args.from, false, state).await?;
    let (tool, arguments) = (args.tool.as_str(), args.arguments.map(Into::into));
    let path = ["tools", tool, "explain"];
    let path = match arguments.is_some() {
        true => &path[..],
        false => &path[..2],
    };
    let explained: Result<Value, _> = place.remote.ask(path, arguments).await;
    if explained.is_err() {
        place.tell_missing().await;
    }
    place.end().await;
    let explanation = explained?;
    if args.json {
        output::json(&explanation);
    } else {
        let text = explanation["text"].as_str().unwrap_or_default();
        output::line(plain::lines(text.trim_end()));
    }
    Ok(ExitCode::SUCCESS)
}
