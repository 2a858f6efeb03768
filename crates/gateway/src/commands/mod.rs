//! The commands, one file each; `check` is a way to `serve`.

pub(crate) mod annotate;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod discover;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod from;
pub(crate) mod grants;
pub(crate) mod keys;
pub(crate) mod lint;
pub(crate) mod relayed;
pub(crate) mod replay;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod toolsets;

use crate::error::{AppError, Outcome};

/// Runs a command on a thread of its own, where it may block, and may pause the clock.
async fn on_a_thread(run: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let ended = tokio::task::spawn_blocking(run).await;
    ended.map_err(|error| AppError::io("the command broke off")(std::io::Error::other(error)))?
}
