//! Keeps one connection alive: connects, watches, and connects again, for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callward_core::redact::Known;
use callward_core::{List, PeerSide};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::child::Process;
use super::connection::Connection;
use super::link::{End, LinkState, Live, PipeLink};
use super::session;
use super::stderr::known_secrets;
use super::supervised::not_started;
use crate::client::answer::RequestError;
use crate::client::ask::Ask;
use crate::client::backoff::Backoff;
use crate::client::info::ServerInfo;
use crate::client::peer;
use crate::client::shared::{Loss, Shared, UpstreamStatus};
use crate::client::watched;
use crate::observed::SessionTimer;
use crate::wire::Era;

/// An open pipe, and the child behind it if there is one.
struct Opened {
    connection: Arc<Connection>,
    process: Option<Process>,
}

/// Runs until the upstream is stopped. In between, the connection may be closed and opened again.
pub(super) async fn run(shared: Arc<Shared>, link: Arc<PipeLink>, end: End) {
    // what an earlier connection showed, or what is tried next since a server ended on the probe
    let mut known = None;
    while let Some(current) = shared.opened().await {
        keep_connected(&shared, &link, &end, &mut known, &current).await;
        link.state.send_replace(LinkState::Connecting);
        shared.idle();
    }
    shared.set(UpstreamStatus::Closed);
}

/// Connects again after each loss until `stop` fires, then ends the connection in good order.
async fn keep_connected(
    shared: &Arc<Shared>,
    link: &PipeLink,
    end: &End,
    known: &mut Option<Era>,
    stop: &CancellationToken,
) {
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    while stop.run_until_cancelled(backoff.pause()).await.is_some() {
        let Some(opened) = stop.run_until_cancelled(open(shared, end)).await else {
            break;
        };
        let loss = match opened {
            Err(loss) => loss,
            Ok(mut opened) => {
                let greeting = greet(shared, &opened, known);
                let reason = match stop.run_until_cancelled(greeting).await {
                    None => "shutting down".to_owned(),
                    Some(Err(reason)) => reason,
                    Some(Ok(info)) => {
                        let since = Instant::now();
                        let reason = attend(shared, link, &opened, info, stop).await;
                        backoff.ended(since);
                        reason
                    }
                };
                finish(shared, &mut opened, reason, stop).await
            }
        };
        if !stop.is_cancelled() {
            shared.lost(loss);
        }
    }
}

async fn open(shared: &Arc<Shared>, end: &End) -> Result<Opened, Loss> {
    match end {
        End::Command(spec) => {
            let spawned = Process::spawn(&shared.id, spec, &shared.options);
            let (process, stdin, stdout) = spawned.map_err(|error| Loss {
                not_started: true,
                ..not_started(&spec.program.to_string_lossy(), &error).into()
            })?;
            *shared.process.lock() = process.id();
            let secrets = known_secrets(spec).into_known();
            let connection = Connection::open(shared, (stdout, stdin), secrets);
            Ok(Opened {
                connection,
                process: Some(process),
            })
        }
        End::Io(io) => {
            let timeout = shared.options.connect_timeout;
            let ends = tokio::time::timeout(timeout, io.connect())
                .await
                .map_err(|_| format!("no connection within {timeout:?}"))?
                .map_err(|error| format!("no connection: {error}"))?;
            Ok(Opened {
                connection: Connection::open(shared, ends, Known::default()),
                process: None,
            })
        }
    }
}

async fn greet(
    shared: &Shared,
    opened: &Opened,
    known: &mut Option<Era>,
) -> Result<ServerInfo, String> {
    let options = &shared.options;
    // one that has greeted before has nothing to download
    let timeout = match shared.info() {
        Some(_) => options.greeting_timeout.min(options.connect_timeout),
        None => options.greeting_timeout,
    };
    let connection = &opened.connection;
    let refuses = AtomicBool::new(false);
    let greeting = session::greet(connection, shared, *known, &refuses);
    // it may end when it refuses: the next one is not sent `initialize`
    let refused = || refuses.load(Ordering::Relaxed).then_some(Era::Modern);
    // a request in flight fails only after the reason is known, so watch for it here
    let greeted = tokio::select! {
        // first, so that a refusal is read before the end that follows it
        biased;
        greeted = tokio::time::timeout(timeout, greeting) => greeted,
        () = connection.closed.cancelled() => {
            *known = refused();
            return Err(connection.reason());
        }
    };
    let greeted = greeted.unwrap_or_else(|_| {
        let text = format!("the server did not answer the greeting within {timeout:?}");
        Err(RequestError::not_sent(text))
    });
    *known = greeted
        .as_ref()
        .map_or_else(|_| refused(), |info| Some(info.era));
    greeted.map_err(|error| error.into_tool_error().message.to_string())
}

/// Lets calls through until the connection ends; returns why it did.
async fn attend(
    shared: &Shared,
    link: &PipeLink,
    opened: &Opened,
    info: ServerInfo,
    stop: &CancellationToken,
) -> String {
    let connection = &opened.connection;
    let live = Live {
        connection: connection.clone(),
        style: shared.options.style(&info),
    };
    // a connection with a legacy server is a session, from its greeting on
    let observer = shared.options.observer.as_ref();
    let observer = observer.filter(|_| info.era == Era::Legacy);
    let _session = SessionTimer::begin(observer, PeerSide::Client, "pipe");
    let announces = info.announces.clone();
    let listens = info.era == Era::Modern && !announces.is_empty();
    let (subscribes, era) = (info.subscribes, info.era);
    let subscribed = live.clone();
    let request = move |ask: Ask<'static>| -> watched::Asking {
        let live = subscribed.clone();
        Box::pin(async move { live.connection.request(&ask, &live.style).await })
    };
    link.state.send_replace(LinkState::Live(live.clone()));
    shared.greeted(Arc::new(info));
    tokio::select! {
        () = stop.cancelled() => connection.close("shutting down"),
        () = connection.closed.cancelled() => {}
        () = listen(shared, &live, &announces), if listens => {}
        () = watched::follow(shared, era, &request), if subscribes => {}
    }
    link.state.send_replace(LinkState::Lost(Instant::now()));
    connection.reason()
}

/// Asks for changes of the lists, again whenever the server ends the subscription.
async fn listen(shared: &Shared, live: &Live, announces: &[List]) {
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    let ask = peer::listen(announces);
    loop {
        backoff.pause().await;
        if let Err(error) = live.connection.request(&ask, &live.style).await {
            let error = error.into_tool_error();
            tracing::debug!(server = %shared.id, %error, "changes of lists are not announced");
            // asking again would not help; the connection itself is watched elsewhere
            return std::future::pending().await;
        }
        // changes between the two subscriptions were not announced
        shared.lists_changed();
    }
}

/// Ends what is left of a connection, and tells those who wait. Returns the full reason.
async fn finish(
    shared: &Shared,
    opened: &mut Opened,
    reason: String,
    stop: &CancellationToken,
) -> Loss {
    opened.connection.close(reason.clone());
    let mut loss = Loss::from(reason);
    if let Some(process) = &mut opened.process
        && !stop.is_cancelled()
    {
        loss = process.exit_reason(&loss.reason).await;
    }
    opened.connection.fail_all(&loss.reason).await;
    if let Some(process) = opened.process.take() {
        *shared.process.lock() = None;
        // a child that has failed is given less time to end than one that is asked to
        let part = if stop.is_cancelled() { 1 } else { 4 };
        process.end(shared.options.shutdown_grace / part).await;
    }
    loss
}
