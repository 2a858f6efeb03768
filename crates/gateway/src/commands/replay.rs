//! `tollgate replay`: how the cache does on recorded traffic, next to other policies.

use crate::args::Replay;
use crate::error::{AppError, Outcome};
use crate::output::Screen;

pub(crate) async fn run(args: Replay, screen: &Screen) -> Outcome {
    let screen = *screen;
    // a replay stops the clock of its thread, so it gets one of its own
    let replayed = tokio::task::spawn_blocking(move || replay(&args, &screen));
    replayed
        .await
        .map_err(|error| AppError::io("the replay ended early")(std::io::Error::other(error)))?
}

fn replay(args: &Replay, _screen: &Screen) -> Outcome {
    match &args.keys {
        Some(_) => Err(AppError::Usage("replay: not built yet".into())),
        None => Err(AppError::Usage("replay: name a file with --keys".into())),
    }
}
