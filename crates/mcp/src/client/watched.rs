//! The resources whose updates are wanted, and which of them their server knows of.

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

/// What is wanted of one instance of a server.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Those of all instances: whatever one changes may be announced by that one only.
    wanted: Arc<watch::Sender<Uris>>,
    /// Those that the server knows of, on the connection of the moment.
    known: watch::Sender<Uris>,
    /// Those that it knew of before: what they hold may have changed since.
    before: Mutex<Uris>,
    /// How many subscriptions to resources a modern server has acknowledged.
    acknowledged: watch::Sender<u64>,
}

impl Watched {
    /// Returns what is wanted of another instance.
    pub(super) fn of_another(&self) -> Self {
        Self {
            wanted: self.wanted.clone(),
            ..Self::default()
        }
    }

    pub(super) fn want(&self, uris: Uris) {
        self.wanted.send_if_modified(|now| {
            let is_other = *now != uris;
            *now = uris;
            is_other
        });
    }

    pub(super) fn is_wanted(&self, uri: &str) -> bool {
        self.wanted.borrow().contains(uri)
    }

    pub(super) fn count(&self) -> usize {
        self.wanted.borrow().len()
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

    /// Waits until the server knows of a resource.
    pub(super) async fn knows(&self, uri: &str) {
        let mut known = self.known.subscribe();
        let _ = timeout(PATIENCE, known.wait_for(|known| known.contains(uri))).await;
    }

    /// Takes the acknowledgement of a subscription, which may be one to lists.
    pub(super) fn acknowledge(&self, params: Option<&Bytes>) {
        let accepted = params.and_then(|params| member(params, "notifications"));
        if accepted.is_some_and(|accepted| member(accepted, "resourceSubscriptions").is_some()) {
            self.acknowledged.send_modify(|count| *count += 1);
        }
    }

    /// Takes note that the server has forgotten what it knew of.
    fn forgotten(&self) {
        let mut before = self.before.lock();
        before.append(&mut self.known.send_replace(Uris::new()));
        before.retain(|uri| self.is_wanted(uri));
    }
}

impl Shared {
    /// Takes note of all that the server knows of. What it knew of before, on another connection,
    /// may have been updated in between.
    fn now_knows(&self, uris: Uris) {
        let before: Uris = {
            let mut before = self.watched.before.lock();
            let (again, rest) = mem::take(&mut *before)
                .into_iter()
                .partition(|uri| uris.contains(uri));
            *before = rest;
            again
        };
        self.watched.known.send_replace(uris);
        for uri in before {
            self.resource_updated(&uri);
        }
    }
}

/// Asks the server of one connection for what is wanted, also when that changes. Never returns.
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
        let mut known = shared.watched.known.borrow().clone();
        let ended = known
            .difference(&now)
            .map(|uri| ("resources/unsubscribe", uri));
        let begun = now
            .difference(&known)
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
            if !known.remove(&uri) {
                known.insert(uri);
            }
            shared.now_knows(known.clone());
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
    } = &shared.watched;
    let (mut wanted, mut acknowledged) = (wanted.subscribe(), acknowledged.subscribe());
    let mut backoff = Backoff::new(shared.options.reconnect_cap);
    let mut open: Option<Asking> = None;
    loop {
        let now = wanted.borrow_and_update().clone();
        if now.is_empty() {
            open = None;
            shared.now_knows(now);
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
                shared.now_knows(now.clone());
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
            shared.now_knows(now);
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
