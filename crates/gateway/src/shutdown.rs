//! Shutdown: the signals, the bounded wait for calls in flight, and the end of the servers.

use std::io;
use std::pin::pin;
use std::time::Duration;

use callward_mcp::client::Upstream;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::show_duration;
use crate::error::AppError;
use crate::output::{self, counted};

/// The requests of signals, and the calls that the end waits for. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Has a token for each call in flight.
    pub(crate) calls: TaskTracker,
    /// Fires when the process is asked to end.
    pub(crate) asked: CancellationToken,
    /// Fires when the gateway takes no new calls: at once, after the lame-duck time, or at the end
    /// of its input.
    pub(crate) closing: CancellationToken,
    /// Fires when no call runs any more: listeners close, and streams of notifications end.
    pub(crate) drained: CancellationToken,
    /// Fires when calls that still run are cut off.
    pub(crate) cut_off: CancellationToken,
    /// Fires when the process is asked a second time: it then ends at once.
    pub(crate) at_once: CancellationToken,
}

/// Returns what Ctrl-C and SIGTERM ask for: the first an end in good order, the second one at once.
///
/// # Errors
///
/// If the process cannot listen for signals.
pub(crate) fn on_signal() -> Result<Stop, AppError> {
    #[cfg(unix)]
    let mut next = {
        use tokio::signal::unix::{SignalKind, signal};

        let listen = |kind| signal(kind).map_err(AppError::io("cannot listen for signals"));
        // from here on the signals do not end the process by themselves
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        async move || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
    };
    #[cfg(not(unix))]
    let next = async || {
        if tokio::signal::ctrl_c().await.is_err() {
            // no signal will ever arrive: run on
            std::future::pending().await
        }
    };
    let stop = Stop::default();
    let asked = stop.clone();
    tokio::spawn(async move {
        next().await;
        asked.asked.cancel();
        next().await;
        asked.at_once.cancel();
    });
    Ok(stop)
}

/// Ignores SIGHUP from here on: nothing can be reloaded, and the end of a terminal session is not
/// that of a gateway. Children get the signal as usual.
///
/// # Errors
///
/// If the process cannot listen for the signal.
pub(crate) fn ignore_hangup() -> Result<(), AppError> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let hangup = signal(SignalKind::hangup());
        let mut hangup = hangup.map_err(AppError::io("cannot listen for SIGHUP"))?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                tracing::info!("SIGHUP is ignored: a changed config takes effect with a restart");
            }
        });
    }
    Ok(())
}

/// How long calls that are cut off may take to be answered and recorded.
const CUT_OFF: Duration = Duration::from_secs(2);

/// How long the last answers may take to be written, once no call is in flight. Without it, streams
/// that clients only listen on would keep the process alive.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// How long requests are still answered after the last call: a client may list the tools to read
/// its answer, and gives that up if its connection is refused.
const LINGER: Duration = Duration::from_secs(1);

/// Runs what serves clients until they leave, until asked to stop, or until the input ends. Then,
/// after the lame-duck time, takes no new calls and waits until `drained` is, within the limit and
/// until a second signal. Meanwhile listeners accept: a client whose connection is refused may give
/// up its calls in flight. Then the servers end, so that the calls they have not answered fail, are
/// answered and recorded.
///
/// # Errors
///
/// What `serving` says.
pub(crate) async fn serve(
    serving: impl Future<Output = io::Result<()>>,
    drained: impl Future<Output = ()>,
    end_servers: impl Future<Output = ()>,
    stop: &Stop,
    lame_duck: Duration,
    limit: Duration,
) -> io::Result<()> {
    let (mut serving, calls) = (pin!(serving), &stop.calls);
    tokio::select! {
        biased;
        () = stop.asked.cancelled() => {}
        () = stop.closing.cancelled() => {}
        ended = &mut serving => return ended,
    }
    let stopping = async {
        let _drained = stop.drained.clone().drop_guard();
        if !lame_duck.is_zero() {
            output::note(format_args!(
                "stopping: not ready any more, calls are accepted for {}",
                show_duration(lame_duck)
            ));
            let sleep = tokio::time::sleep(lame_duck);
            stop.at_once.run_until_cancelled(sleep).await;
        }
        stop.closing.cancel();
        calls.close();
        let waiting = calls.len();
        if waiting > 0 {
            output::note(format_args!(
                "stopping: {} in flight, at most {} more",
                counted(&waiting, "call"),
                show_duration(limit)
            ));
        }
        tokio::select! {
            biased;
            () = drained => {
                if waiting > 0 && stop.asked.is_cancelled() {
                    let sleep = tokio::time::sleep(LINGER);
                    stop.at_once.run_until_cancelled(sleep).await;
                }
                if waiting > 0 || stop.asked.is_cancelled() {
                    output::note("stopped: no call was cut off");
                }
                return;
            }
            () = tokio::time::sleep(limit) => {}
            () = stop.at_once.cancelled() => {}
        }
        let cut = counted(&calls.len(), "call");
        output::note(format_args!("stopped: {cut} cut off"));
        stop.cut_off.cancel();
        let _ = tokio::time::timeout(CUT_OFF, async {
            tokio::join!(calls.wait(), end_servers);
        })
        .await;
    };
    let mut stopping = pin!(stopping);
    tokio::select! {
        () = &mut stopping => {}
        ended = &mut serving => {
            stopping.await;
            return ended;
        }
    }
    // a call that ended is not yet an answer that was written
    let written = tokio::time::timeout(LAST_WRITES, serving).await;
    written.unwrap_or(Ok(()))
}

/// Ends the servers in good order: a child's input is closed and it may finish, a session is
/// deleted. Without this their supervisors would end the children, and sessions would stay.
pub(crate) async fn end_servers(upstreams: &[Upstream], stop: &Stop) {
    tokio::select! {
        _ = join_all(upstreams.iter().map(Upstream::shutdown)) => {}
        () = stop.at_once.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_are_answered_for_a_second_after_the_last_call() {
        for (calls, ends) in [(0, 0), (1, 6)] {
            let (stop, began) = (Stop::default(), Instant::now());
            let in_flight: Vec<_> = (0..calls).map(|_| stop.calls.token()).collect();
            stop.asked.cancel();
            let ended = async {
                sleep(Duration::from_secs(5)).await;
                drop(in_flight);
            };
            let serving = async {
                stop.drained.cancelled().await;
                assert_eq!(began.elapsed(), Duration::from_secs(ends));
                Ok(())
            };
            let (calls, limit) = (stop.calls.clone(), Duration::from_secs(10));
            let served = serve(
                serving,
                calls.wait(),
                async {},
                &stop,
                Duration::ZERO,
                limit,
            );
            tokio::join!(served, ended).0.unwrap();
        }
    }
}
