//! `callward explain`: what would happen to a call, or to a tool's calls, and why.

use std::process::ExitCode;

use serde_json::Value;

use crate::args::Explain;
use crate::commands::from::{Place, check_arguments};
use crate::error::Outcome;
use crate::state_dir::StateDir;
use crate::{api, output, plain};

pub(crate) async fn run(args: Explain, state: Option<&StateDir>) -> Outcome {
    if let Some(arguments) = &args.arguments {
        check_arguments(arguments)?;
    }
    let place = Place::find(&args.from, false, state).await?;
    let (tool, arguments) = (args.tool.as_str(), args.arguments.map(Into::into));
    let principal = args
        .principal
        .into_iter()
        .map(|principal| (api::PRINCIPAL, principal));
    let roles = args.roles.into_iter().map(|role| (api::ROLE, role));
    let scopes = args.scopes.into_iter().map(|scope| (api::SCOPE, scope));
    let who: Vec<_> = principal.chain(roles).chain(scopes).collect();
    let explained: Result<Value, _> = place.remote.explain(tool, arguments, &who).await;
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
