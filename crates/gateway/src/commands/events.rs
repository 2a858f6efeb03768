//! `callward events`: the decisions of the router of a running gateway, live.

use std::process::ExitCode;

use serde_json::value::RawValue;

use crate::api;
use crate::args::Events;
use crate::error::{AppError, Outcome};
use crate::output;
use crate::state_dir::StateDir;
use crate::{plain, shutdown, view};

pub(crate) async fn run(args: Events, state: Option<&StateDir>) -> Outcome {
    let stop = shutdown::on_signal()?;
    tokio::select! {
        biased;
        () = stop.asked().cancelled() => Ok(ExitCode::SUCCESS),
        followed = follow(args, state) => followed,
    }
}

async fn follow(args: Events, state: Option<&StateDir>) -> Outcome {
    let (remote, url) = api::gateway(&args.gateway, state).await?;
    let mut events = remote.events().await?;
    output::note(format_args!("following {url}"));
    while output::is_read() {
        let Some(event) = events.next().await? else {
            output::note("the gateway stopped");
            break;
        };
        show(&event, args.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(event: &str, as_json: bool) -> Result<(), AppError> {
    let unreadable =
        |error: serde_json::Error| AppError::Remote(format!("an event cannot be read: {error}"));
    if as_json {
        let event: &RawValue = serde_json::from_str(event).map_err(unreadable)?;
        output::json(event);
        return Ok(());
    }
    let (line, tone) = view::event(&serde_json::from_str(event).map_err(unreadable)?);
    let line = plain::line(&line);
    match tone {
        Some(tone) => output::line(output::toned(line, tone)),
        None => output::line(line),
    }
    Ok(())
}
