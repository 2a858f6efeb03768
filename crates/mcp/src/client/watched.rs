//! The resources whose updates are wanted, and what their server was told of them.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::answer::RequestError;
use super::ask::Ask;
use super::backoff::Backoff;
use super::peer;
use super::shared::Shared;
use crate::wire::{Era, object};

/// URIs as the server knows them.
pub(super) type Uris = BTreeSet<Arc<str>>;

/// A request on its way.
pub(super) type Asking = BoxFuture<'static, Result<Bytes, RequestError>>;

/// How long a server may take to acknowledge a subscription. One that takes longer is believed to
/// have it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is wanted of the server of an upstream.
#[derive(Debug, Default)]
pub(super) struct Watched {
    wanted: watch::Sender<Uris>,
    /// Those that the server was told, on the connection of the moment.
    told: watch::Sender<Uris>,
    /// Those that it was told before: what they hold may have changed since.
    before: Mutex<Uris>,
    /// How many subscriptions to resources a modern server has acknowledged.
    acknowledged: watch::Sender<u64>,
}

impl Watched {
    pub(super) fn want(&self, uris: Uris) {
        self.wanted.send_replace(uris);
    }

    pub(super) fn is_wanted(&self, uri: &str) -> bool {
        self.wanted.borrow().contains(uri)
    }

    /// Returns the wanted ones that an update of this one concerns: a server may announce a part of
    /// what was subscribed to.
    pub(super) fn concerned(&self, updated: &str) -> Vec<Arc<str>> {
        let is_part = |uri: &&Arc<str>| {
            updated.strip_prefix(&***uri).is_some_and(|rest| {
                rest.is_empty() || uri.ends_with('/') || rest.starts_with(['/', '?', '#'])
            })
        };
        self.wanted
            .borrow()
            .iter()
            .filter(is_part)
            .cloned()
            .collect()
    }

    /// Waits until the server was told of a resource.
    pub(super) async fn told_of(&self, uri: &str) {
        let mut told = self.told.subscribe();
        let _ = timeout(PATIENCE, told.wait_for(|told| told.contains(uri))).await;
    }

    /// Takes the acknowledgement of a subscription, which may be one to lists.
    pub(super) fn acknowledge(&self, params: Option<&Bytes>) {
        let accepted = params.and_then(|params| member(params, "notifications"));
        if accepted.is_some_and(|accepted| member(accepted, "resourceSubscriptions").is_some()) {
            self.acknowledged.send_modify(|count| *count += 1);
        }
    }

    /// Takes note that the server has forgotten what it was told.
    fn forgotten(&self) {
        let mut before = self.before.lock();
        before.append(&mut self.told.send_replace(Uris::new()));
        before.retain(|uri| self.is_wanted(uri));
    }
}

impl Shared {
    /// Takes note of all that the server was told. What it was told before, on another connection,
    /// may have been updated in between.
    fn told(&self, uris: Uris) {
        let before: Uris = {
            let mut before = self.watched.before.lock();
            let (again, rest) = mem::take(&mut *before)
                .into_iter()
                .partition(|uri| uris.contains(uri));
            *before = rest;
            again
        };
        self.watched.told.send_replace(uris);
        for uri in before {
            self.resource_updated(&uri);
        }
    }
}

/// Tells the server of one connection what is wanted, and of each change of that. Never returns.
pub(super) async fn follow(
    shared: &Shared,
    era: Era,
    request: &(dyn Fn(Ask<'static>) -> Asking + Send + Sync),
) {
    shared.watched.forgotten();
    match era {
        Era::Legacy => subscribe(shared, request).await,
        Era::Modern => listen(shared, request).await,
    }
}

/// Subscribes to each resource, and ends subscriptions that are not wanted any more.
async fn subscribe(shared: &Shared, request: &(dyn Fn(Ask<'static>) -> Asking + Send + Sync)) {
    let mut wanted = shared.watched.wanted.subscribe();
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    loop {
        let now = wanted.borrow_and_update().clone();
        let mut told = shared.watched.told.borrow().clone();
        let ended = told
            .difference(&now)
            .map(|uri| ("resources/unsubscribe", uri));
        let begun = now
            .difference(&told)
            .map(|uri| ("resources/subscribe", uri));
        let asked = ended
            .chain(begun)
            .map(|(method, uri)| (method, uri.clone()));
        let asked: Vec<_> = asked.collect();
        let mut is_lost = false;
        for (method, uri) in asked {
            let ask = Ask::new(method, json!({"uri": uri}).to_string());
            match timeout(PATIENCE, request(ask)).await {
                Ok(Err(RequestError::Refused(error))) => {
                    tracing::debug!(server = %shared.id, %error, method, "refused");
                }
                Ok(Err(_)) => {
                    is_lost = true;
                    break;
                }
                Ok(Ok(_)) | Err(_) => {}
            }
            if !told.remove(&uri) {
                told.insert(uri);
            }
            shared.told(told.clone());
        }
        match is_lost {
            true => backoff.pause().await,
            // never an error: `shared` has the sender
            false => drop(wanted.changed().await),
        }
    }
}

/// Keeps one subscription to all resources open. One to others is acknowledged before it ends, so
/// that no update is missed.
async fn listen(shared: &Shared, request: &(dyn Fn(Ask<'static>) -> Asking + Send + Sync)) {
    let Watched {
        wanted,
        acknowledged,
        ..
    } = &*shared.watched;
    let (mut wanted, mut acknowledged) = (wanted.subscribe(), acknowledged.subscribe());
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    let mut open: Option<Asking> = None;
    loop {
        let now = wanted.borrow_and_update().clone();
        if now.is_empty() {
            open = None;
            shared.told(now);
            let _ = wanted.changed().await;
            continue;
        }
        acknowledged.mark_unchanged();
        let mut next = request(peer::listen_to(&now));
        let since = Instant::now();
        let ended = tokio::select! {
            ended = &mut next => Some(ended),
            _ = timeout(PATIENCE, acknowledged.changed()) => None,
            () = until_replaced(open.take()) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                shared.told(now.clone());
                tokio::select! {
                    ended = &mut next => ended,
                    _ = wanted.changed() => {
                        open = Some(next);
                        continue;
                    }
                }
            }
        };
        if let Err(RequestError::Refused(error)) = ended {
            tracing::debug!(server = %shared.id, %error, "updates of resources are not announced");
            // no one is to wait for it, and asking again would not help
            shared.told(now);
            let _ = wanted.changed().await;
            continue;
        }
        shared.watched.forgotten();
        backoff.ended(since);
        backoff.pause().await;
    }
}

/// Reads what an earlier subscription brings; never returns.
async fn until_replaced(open: Option<Asking>) {
    if let Some(open) = open {
        let _ = open.await;
    }
    std::future::pending::<()>().await;
}

/// Returns the URI of an update.
pub(super) fn uri_in(params: Option<&Bytes>) -> Option<String> {
    serde_json::from_slice(member(params?, "uri")?).ok()
}

fn member<'a>(raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
    object::get_member(raw, name).ok().flatten()
}
