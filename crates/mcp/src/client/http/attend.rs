//! Watches a server between calls: opens the first session, listens for changes of the tools and
//! for requests, and reconnects when the server is down.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callward_core::Delivery;
use tokio::time::Instant;

use super::exchange::aside;
use super::link::{HttpLink, Known};
use super::resume::events;
use super::session::Session;
use crate::client::answer::RequestError;
use crate::client::ask::Ask;
use crate::client::backoff::Backoff;
use crate::client::handshake::PROBE_TIMEOUT;
use crate::client::info::ServerInfo;
use crate::client::peer;
use crate::client::shared::UpstreamStatus;
use crate::client::watched;
use crate::wire::{Era, Message, SHORT};

/// Runs until the upstream is stopped. In between, the session may be ended and another one made.
pub(super) async fn run(link: Arc<HttpLink>) {
    while let Some(current) = link.shared.opened().await {
        current.run_until_cancelled(watch(&link)).await;
        link.end().await;
        link.shared.idle();
    }
    link.shared.set(UpstreamStatus::Closed);
}

/// Never returns.
async fn watch(link: &Arc<HttpLink>) {
    let shared = &link.shared;
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    loop {
        tokio::select! {
            biased;
            _ = shared.until(|status| *status == UpstreamStatus::Up) => {} // a call found it first
            () = backoff.pause() => if let Err(error) = revive(link).await {
                let reason = error.into_tool_error().message.to_string();
                shared.lost(reason.into());
                continue;
            },
        }
        let since = Instant::now();
        tokio::select! {
            _ = shared.until(UpstreamStatus::is_down) => link.forget_modern(),
            () = attend(link) => {}
        }
        backoff.ended(since);
    }
}

/// Pings the server, or opens a session if there is none.
async fn revive(link: &Arc<HttpLink>) -> Result<(), RequestError> {
    if let Some(session) = link.current() {
        match live(link, &session).await {
            Ok(()) => {
                link.shared.up();
                return Ok(());
            }
            Err(RequestError::SessionGone) => {}
            Err(error) => return Err(error),
        }
    }
    link.session().await.map(|_| ())
}

/// Any answer counts, except one that reports a failed server.
async fn live(link: &Arc<HttpLink>, session: &Arc<Session>) -> Result<(), RequestError> {
    let ask = peer::sign_of_life(session.info.era);
    let answer = tokio::time::timeout(PROBE_TIMEOUT, link.exchange(session, &ask))
        .await
        .unwrap_or_else(|_| Err(RequestError::not_sent("the server gave no sign of life")));
    match answer {
        Ok(_) | Err(RequestError::Refused(_)) => Ok(()),
        Err(RequestError::Failed(error))
            if error.delivery == Delivery::Answered && !error.kind.blames_server() =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Listens to the server for as long as it is up; never returns.
async fn attend(link: &Arc<HttpLink>) {
    let shared = &link.shared;
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    let mut was_listening = false;
    loop {
        backoff.pause().await;
        let Ok(session) = link.session().await else {
            continue;
        };
        let (info, since) = (session.info.clone(), Instant::now());
        if !session.may_have_stream() {
            let ended = session.ended();
            // held here, it would not end
            drop(session);
            tokio::select! {
                () = ended => {}
                () = subscribe(link, &info) => {}
            }
            backoff.ended(since);
            continue;
        }
        if was_listening {
            // changes between the two streams were not announced
            shared.lists_changed();
        }
        let listened = tokio::select! {
            listened = listen(link, &session) => listened,
            () = subscribe(link, &info) => Ok(()),
        };
        match listened {
            Ok(()) => was_listening = true,
            Err(RequestError::SessionGone) => {
                // the server lost the session, and with it its state for this client
                link.lose(&session, Known::Legacy);
                was_listening = link.session().await.is_ok();
            }
            Err(error) => {
                let error = error.into_tool_error();
                if error.delivery == Delivery::NotSent {
                    shared.down(&error.message);
                } else if !error.kind.is_transient() {
                    tracing::debug!(server = %shared.id, %error, "the server offers no stream of its own");
                    session.has_no_stream.store(true, Ordering::Relaxed);
                    continue;
                }
                was_listening = true;
            }
        }
        session.doubt();
        backoff.ended(since);
    }
}

/// Subscribes to the resources that are wanted; never returns.
async fn subscribe(link: &Arc<HttpLink>, info: &ServerInfo) {
    if !info.subscribes {
        return std::future::pending().await;
    }
    let asked = link.clone();
    let request = move |ask: Ask<'static>| -> watched::Asking {
        let link = asked.clone();
        Box::pin(async move { link.request(&ask).await })
    };
    watched::follow(&link.shared, info.era, &request).await;
}

/// Follows the stream of a session until it ends.
///
/// # Errors
///
/// There is no stream.
async fn listen(link: &Arc<HttpLink>, session: &Arc<Session>) -> Result<(), RequestError> {
    if session.info.era == Era::Modern {
        // its notifications come beside the answer, which comes at the end
        return match link
            .exchange(session, &peer::listen(&session.info.announces))
            .await
        {
            Err(RequestError::Failed(error)) if error.delivery == Delivery::Unknown => Ok(()),
            answered => answered.map(|_| ()),
        };
    }
    let resume = session.resume.lock().clone();
    resume.pause(Duration::ZERO).await;
    let after = resume.last_event();
    // requests and announced changes are short
    let limit = link.shared.options.max_message.min(SHORT);
    let opened = events(link, session, after.clone(), limit).await;
    session.stream_tried.cancel();
    let mut events = match opened {
        Ok(events) => events,
        Err(RequestError::Failed(error))
            if after.is_some() && error.delivery == Delivery::Answered =>
        {
            // the server may not keep events for so long
            session.resume.lock().forget();
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    events.resume = resume;
    loop {
        let event = events.next().await;
        session.resume.lock().clone_from(&events.resume);
        let Ok(Some(event)) = event else {
            return Ok(());
        };
        if let Ok(message) = Message::parse(&event) {
            aside(link, session, None, message);
        }
    }
}
