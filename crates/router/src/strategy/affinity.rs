//! Calls that belong together go to one server.

use std::sync::Arc;

use callward_core::{InvalidConfig, ServerId};
use tokio::time::Instant;

use super::{PeakEwma, Strategy};
use crate::affinity::rendezvous::highest;
use crate::affinity::{AffinityConfig, AffinitySet, Entry, ExpiryCause, Key, Keys, Table};
use crate::candidates::Candidates;
use crate::events::{RouteEvent, RouteEvents};
use crate::rule::ExclusionReason;

/// Calls that belong together go to one server: those of a session, of a user, or about one thing.
/// See [`affinity`](crate::affinity) for what counts as together, and what moves when.
///
/// Calls without a key go where another strategy says, [`PeakEwma`](crate::PeakEwma) if none is
/// set.
///
/// ```
/// use std::sync::Arc;
/// use callward_router::affinity::{AffinityConfig, AffinityKey};
/// use callward_router::{Affinity, RoundRobin};
///
/// let config = AffinityConfig::default().with_by(AffinityKey::User);
/// let strategy = Affinity::new(&config)?.with_fallback(Arc::new(RoundRobin));
/// assert_eq!(strategy.held(), 0);
/// # Ok::<(), callward_core::InvalidConfig>(())
/// ```
#[derive(Debug)]
pub struct Affinity {
    keys: Keys,
    homes: Table,
    fallback: Arc<dyn Strategy>,
    events: Option<Arc<RouteEvents>>,
}

impl Affinity {
    /// Makes the strategy.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(config: &AffinityConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        Ok(Self::of(config))
    }

    /// `config` is valid.
    fn of(config: &AffinityConfig) -> Self {
        Self {
            keys: Keys::new(config),
            homes: Table::new(config.max_keys, config.ttl),
            fallback: Arc::new(PeakEwma),
            events: None,
        }
    }

    /// Sets a custom strategy for calls without a key. Default: [`PeakEwma`].
    #[must_use]
    pub fn with_fallback(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.fallback = strategy;
        self
    }

    /// Sets the stream that reports where keys go. Default: none.
    #[must_use]
    pub fn with_events(mut self, events: Arc<RouteEvents>) -> Self {
        self.events = Some(events);
        self
    }

    /// Returns how many keys are remembered, expired ones that were not met since included.
    #[must_use]
    pub fn held(&self) -> usize {
        self.homes.len()
    }

    /// Gives a key a home and reports it, unless another call gave it one meanwhile.
    fn settle(&self, entry: Entry, now: Instant, lost: Option<(ServerId, ExpiryCause)>) {
        let set = AffinitySet {
            kind: entry.kind,
            key: entry.digest,
            set: entry.set.clone(),
            server: entry.server.clone(),
            ttl: self.homes.ttl(),
        };
        let change = self.homes.set(entry, now, lost);
        let Some(events) = &self.events else {
            return;
        };
        for expired in change.expired {
            events.send(|| RouteEvent::AffinityExpired(expired));
        }
        if change.is_set {
            events.send(|| RouteEvent::AffinitySet(set));
        }
    }
}

impl Default for Affinity {
    /// By session, with [`AffinityConfig::default`].
    fn default() -> Self {
        Self::of(&AffinityConfig::default())
    }
}

impl Strategy for Affinity {
    fn name(&self) -> &'static str {
        "affinity"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let call = candidates.call();
        let Some(key) = self.keys.of(call) else {
            return self.fallback.choose(candidates);
        };
        let (place, now) = (self.keys.place(&key, call), Instant::now());
        let home = self.homes.find(place, now, !candidates.is_preview());
        let lost = match home {
            None => None,
            Some(home) => {
                let mut all = candidates.iter();
                if let Some((index, _)) = all.find(|(_, server)| *server.server() == home.server) {
                    return Some(index);
                }
                match lost(&home, candidates) {
                    // it stays at home: this call alone takes a detour
                    None => return ranked_first(&key, candidates),
                    Some(cause) => Some((home.server, cause)),
                }
            }
        };
        let index = ranked_first(&key, candidates)?;
        if !candidates.is_preview() {
            let entry = Entry {
                key: place,
                kind: key.kind(),
                digest: self.keys.event_digest(&key),
                set: call.tool().set().clone(),
                server: candidates.server(index)?.server().clone(),
                used: now,
            };
            self.settle(entry, now, lost);
        }
        Some(index)
    }
}

/// Returns why a server loses its keys, if it does: for a reason that concerns every call.
fn lost(home: &Entry, candidates: &Candidates<'_>) -> Option<ExpiryCause> {
    let Some(server) = candidates.known(&home.server) else {
        return Some(ExpiryCause::Removed);
    };
    match server.check(candidates.call()) {
        Err(ExclusionReason::Draining) => Some(ExpiryCause::Draining),
        Err(ExclusionReason::Unreachable) => Some(ExpiryCause::Unreachable),
        _ => None,
    }
}

/// Returns the candidate that ranks highest for a key.
fn ranked_first(key: &Key<'_>, candidates: &Candidates<'_>) -> Option<usize> {
    let all = candidates
        .iter()
        .map(|(index, server)| (index, server.candidate()));
    highest(key.digest(), all)
}
