//! `callward events`: what the router of a running gateway does, as it does it.

use std::process::ExitCode;

use serde_json::value::RawValue;

use crate::api;
use crate::args::Events;
use crate::error::{AppError, Outcome};
use crate::output::Screen;
use crate::state_dir::StateDir;
use crate::{plain, shutdown, view};

pub(crate) async fn run(args: Events, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let stop = shutdown::on_signal()?;
    tokio::select! {
        biased;
        () = stop.asked().cancelled() => Ok(ExitCode::SUCCESS),
        followed = follow(args, state, screen) => followed,
    }
}

async fn follow(args: Events, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let (remote, url) = api::gateway(&args.gateway, state).await?;
    let mut events = remote.events().await?;
    screen.note(format_args!("following {url}"));
    while screen.is_read() {
        let Some(event) = events.next().await? else {
            screen.note("the gateway stopped");
            break;
        };
        show(&event, args.json, screen)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(event: &str, as_json: bool, screen: &Screen) -> Result<(), AppError> {
    let unreadable =
        |error: serde_json::Error| AppError::Remote(format!("an event cannot be read: {error}"));
    if as_json {
        let event: &RawValue = serde_json::from_str(event).map_err(unreadable)?;
        screen.json(event);
        return Ok(());
    }
    let (line, tone) = view::event(&serde_json::from_str(event).map_err(unreadable)?);
    let line = plain::line(&line);
    match tone {
        Some(tone) => screen.out(screen.toned(line, tone)),
        None => screen.out(line),
    }
    Ok(())
}
