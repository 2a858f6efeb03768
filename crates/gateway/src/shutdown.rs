//! Ending: the signals that ask for it, and the bounded wait for calls in flight.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::AppError;
use crate::config::show_duration;
use crate::inflight::Inflight;
use crate::output::Screen;

/// Returns a token that is cancelled by Ctrl-C or SIGTERM.
///
/// # Errors
///
/// If the process cannot listen for signals.
pub(crate) fn on_signal() -> Result<CancellationToken, AppError> {
    let asked = Signals::listen().map_err(AppError::io("cannot listen for signals"))?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        asked.wait().await;
        told.cancel();
    });
    Ok(stop)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From here on the signals no longer end the process by themselves.
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn wait(self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // it will never be told of a signal: run on
            std::future::pending().await
        }
    }
}

/// Waits until no call is in flight, but not longer than `limit`. Says how many are cut off; `true`
/// if none is.
pub(crate) async fn drain(calls: &Inflight, limit: Duration, screen: &Screen) -> bool {
    let waiting = calls.count();
    if waiting > 0 {
        screen.note(format_args!(
            "stopping: {waiting} {} in flight, at most {} more",
            calls_word(waiting),
            show_duration(limit)
        ));
    }
    let ended = tokio::time::timeout(limit, calls.ended()).await.is_ok();
    if ended {
        screen.note("stopped: no call was cut off");
    } else {
        let cut = calls.count();
        screen.note(format_args!("stopped: {cut} {} cut off", calls_word(cut)));
    }
    ended
}

const fn calls_word(count: usize) -> &'static str {
    if count == 1 { "call" } else { "calls" }
}
