//! Watches a server between calls: opens the first session, listens for changes of the tools and
//! for requests, and reconnects when the server is down.

use std::sync::Arc;

use callward_core::Delivery;
use tokio_util::sync::CancellationToken;

use super::exchange::{self, aside};
use super::link::HttpLink;
use super::session::Session;
use crate::client::answer::RequestError;
use crate::client::backoff::Backoff;
use crate::client::peer;
use crate::client::shared::UpstreamStatus;
use crate::wire::{Era, Message};

/// Runs until `stop` fires. In between, the session may be ended and another one made.
pub(super) async fn run(link: Arc<HttpLink>, stop: CancellationToken) {
    let shared = &link.endpoint.shared;
    while let Some(current) = stop.run_until_cancelled(shared.opened()).await {
        current.run_until_cancelled(watch(&link)).await;
        link.end().await;
        if stop.is_cancelled() {
            break;
        }
        shared.idle();
    }
    shared.closed();
}

/// Never returns.
async fn watch(link: &Arc<HttpLink>) {
    let shared = &link.endpoint.shared;
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    let mut status = shared.status();
    loop {
        // `shared` owns the sender, so waiting cannot fail
        let back = async {
            let _ = status.wait_for(|s| *s == UpstreamStatus::Up).await;
        };
        let pause = backoff.next(fastrand::f64());
        tokio::select! {
            biased;
            () = back => {} // a call found it first
            () = tokio::time::sleep(pause) => match revive(link).await {
                Ok(()) => {}
                Err(reason) => {
                    shared.lost(&reason.into());
                    continue;
                }
            },
        }
        let since = tokio::time::Instant::now();
        let gone = async {
            let _ = shared
                .status()
                .wait_for(|s| matches!(s, UpstreamStatus::Down(_)))
                .await;
        };
        tokio::select! {
            () = gone => link.forget_modern(),
            () = attend(link) => {}
        }
        if since.elapsed() >= backoff.cap() {
            backoff.reset();
        }
    }
}

/// Pings the server, or opens a session if there is none.
async fn revive(link: &Arc<HttpLink>) -> Result<(), String> {
    let reported = |error: RequestError| error.into_tool_error().message().to_owned();
    let Some(session) = link.current() else {
        return link.session().await.map(|_| ()).map_err(reported);
    };
    match live(link, &session).await {
        Ok(()) => {
            link.endpoint.shared.up();
            Ok(())
        }
        Err(RequestError::SessionGone) => {
            link.renewed(&session).await.map(|_| ()).map_err(reported)
        }
        Err(error) => Err(reported(error)),
    }
}

/// Any answer counts, except one that reports a failed server.
async fn live(link: &Arc<HttpLink>, session: &Arc<Session>) -> Result<(), RequestError> {
    let ask = peer::sign_of_life(session.info.era);
    let timeout = link.endpoint.shared.options.probe_timeout;
    let answer = tokio::time::timeout(timeout, link.exchange(session, &ask))
        .await
        .unwrap_or_else(|_| Err(RequestError::not_sent("the server gave no sign of life")));
    match answer {
        Ok(_) | Err(RequestError::Refused(_)) => Ok(()),
        Err(RequestError::Failed(error))
            if error.delivery() == Delivery::Answered && !error.kind().blames_server() =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Listens to the server for as long as it is up; never returns.
async fn attend(link: &Arc<HttpLink>) {
    let shared = &link.endpoint.shared;
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    let mut was_listening = false;
    loop {
        tokio::time::sleep(backoff.next(fastrand::f64())).await;
        let Ok(session) = link.session().await else {
            continue;
        };
        if !session.may_have_stream() {
            return std::future::pending().await;
        }
        if was_listening {
            // changes between the two streams were not announced
            shared.tools_changed();
        }
        let since = tokio::time::Instant::now();
        match listen(link, &session).await {
            Ok(()) => was_listening = true,
            Err(RequestError::SessionGone) => {
                // the server lost the session, and with it its state for this client
                was_listening = link.renewed(&session).await.is_ok();
            }
            Err(error) => {
                let error = error.into_tool_error();
                if error.delivery() == Delivery::NotSent {
                    shared.down(error.message());
                } else if !error.kind().is_transient() {
                    tracing::debug!(server = %shared.id, %error, "the server offers no stream of its own");
                    session.refuse_stream();
                    continue;
                }
                was_listening = true;
            }
        }
        if since.elapsed() >= backoff.cap() {
            backoff.reset();
        }
    }
}

/// Follows the stream of a session until it ends.
///
/// # Errors
///
/// There is no stream.
async fn listen(link: &Arc<HttpLink>, session: &Arc<Session>) -> Result<(), RequestError> {
    if session.info.era == Era::Modern {
        // its notifications come beside the answer, which comes at the end
        return match link.exchange(session, &peer::listen()).await {
            Err(RequestError::Failed(error)) if error.delivery() == Delivery::Unknown => Ok(()),
            answered => answered.map(|_| ()),
        };
    }
    let endpoint = &link.endpoint;
    let mut events = exchange::events(endpoint, session, None).await?;
    while let Ok(Some(event)) = events.next().await {
        if let Ok(message) = Message::parse(&event) {
            aside(endpoint, session, message);
        }
    }
    Ok(())
}
