//! Calls that belong together go to one server.

use std::sync::Arc;

use callward_core::InvalidConfig;
use tokio::time::Instant;

use super::{Strategy, StrategyName};
use crate::affinity::rendezvous::highest;
use crate::affinity::{AffinityConfig, Entry, ExpiryCause, Key, Keys, Table};
use crate::candidates::Candidates;
use crate::events::RouteEvents;
use crate::rule::ExclusionReason;

/// Calls that belong together go to one server: those of a session, of a user, or about one thing.
/// See [`affinity`](crate::affinity) for what counts as together, and what moves when.
///
/// Calls without a key go where another strategy says, [`StrategyName::PeakEwma`] if none is set.
///
/// ```
/// use callward_router::affinity::{AffinityConfig, AffinityKey};
/// use callward_router::{Affinity, StrategyName};
///
/// let mut config = AffinityConfig::default();
/// config.by = AffinityKey::User;
/// let strategy = Affinity::new(&config)?.with_fallback(StrategyName::RoundRobin.strategy());
/// # Ok::<(), callward_core::InvalidConfig>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Affinity {
    keys: Keys,
    homes: Table,
    fallback: Arc<dyn Strategy>,
    events: Option<Arc<RouteEvents>>,
}

/// How many keys are remembered, of all replica sets together, each in about 100 bytes. When there
/// are more, some that were not used for long are forgotten.
const MAX_KEYS: usize = 100_000;

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
    pub(crate) fn of(config: &AffinityConfig) -> Self {
        Self {
            keys: Keys::new(config),
            homes: Table::new(MAX_KEYS, config.ttl),
            fallback: StrategyName::PeakEwma.strategy(),
            events: None,
        }
    }

    /// Sets the strategy for calls without a key. Default: [`StrategyName::PeakEwma`].
    pub fn with_fallback(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.fallback = strategy;
        self
    }

    /// Sets the stream that reports where keys go. Default: none.
    pub fn with_events(mut self, events: Arc<RouteEvents>) -> Self {
        self.events = Some(events);
        self
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
        let call = candidates.call;
        let Some(key) = self.keys.of(call) else {
            return self.fallback.choose(candidates);
        };
        let (place, now) = (self.keys.place(&key, call), Instant::now());
        let home = self.homes.find(place, now, !candidates.is_preview);
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
        if !candidates.is_preview {
            let entry = Entry {
                key: place,
                by: key.kind(),
                digest: self.keys.event_digest(&key),
                set: call.tool().set().clone(),
                server: candidates.server(index)?.server().clone(),
                used: now,
            };
            let changes = self.homes.set(entry, now, lost);
            for change in changes {
                if let Some(events) = &self.events {
                    events.send(|| change);
                }
            }
        }
        Some(index)
    }
}

/// Returns why a server loses its keys, if it does: for a reason that concerns every call.
fn lost(home: &Entry, candidates: &Candidates<'_>) -> Option<ExpiryCause> {
    let Some(server) = candidates.known(&home.server) else {
        return Some(ExpiryCause::Removed);
    };
    match server.check(candidates.call) {
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
