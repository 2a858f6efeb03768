//! Calls that belong together go to one server.

use std::sync::Arc;

use callward_core::InvalidConfig;
use tokio::time::Instant;

use super::Strategy;
use crate::affinity::rendezvous::highest;
use crate::affinity::{
    AffinityConfig, AffinityObserver, AffinitySet, Entry, ExpiryCause, Found, Key, Keys, Table,
};
use crate::eligible::Eligible;
use crate::unfit::Unfit;

/// Calls that belong together go to one server: those of a session, of a user, or about one thing. See
/// [`affinity`](crate::affinity) for what counts as together, and what moves when.
///
/// Calls without a key go where another strategy says, [`PeakEwma`](crate::PeakEwma) if none is set.
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
    /// Where keys belong.
    homes: Table,
    /// Where calls go that cannot go there, by key and tool.
    detours: Table,
    fallback: Arc<dyn Strategy>,
    observer: Option<Arc<dyn AffinityObserver>>,
}

impl Affinity {
    /// Makes the strategy.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: &AffinityConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        Ok(Self::of(config))
    }

    /// `config` is valid.
    fn of(config: &AffinityConfig) -> Self {
        Self {
            keys: Keys::new(config),
            homes: Table::new(config.max_keys, config.ttl),
            detours: Table::new(config.max_keys, config.ttl),
            fallback: config.fallback.strategy(),
            observer: None,
        }
    }

    /// Lets a strategy of somebody else's say where calls without a key go. Default: what
    /// [`AffinityConfig::fallback`] says.
    #[must_use]
    pub fn with_fallback(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.fallback = strategy;
        self
    }

    /// Sets who is told where keys go. Default: nobody.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn AffinityObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns how many keys are remembered, counting those that have expired and were not met since.
    #[must_use]
    pub fn held(&self) -> usize {
        self.homes.len()
    }

    /// Gives a key a home: its first, or another one for the reason given.
    fn settle(
        &self,
        entry: Entry,
        now: Instant,
        before: Found,
        cause: Option<ExpiryCause>,
        among: &Eligible<'_>,
    ) {
        let set = AffinitySet {
            kind: entry.kind,
            key: entry.told,
            set: entry.set.clone(),
            server: entry.server.clone(),
            ttl: self.homes.ttl(),
        };
        // Another call may have been here meanwhile: only a home that was seen to be lost is given up.
        let change = self.homes.set(entry, now, |had| {
            let is_lost = match before {
                Found::Nothing => false,
                Found::Lost => among.place_of(had, usize::MAX).is_none(),
                Found::At(place) => among.at(place).is_some_and(|seen| seen.server() == had),
            };
            cause.filter(|_| is_lost)
        });
        let Some(observer) = &self.observer else {
            return;
        };
        for expired in &change.ended {
            observer.on_expired(expired);
        }
        if change.is_set {
            observer.on_set(&set);
        }
    }

    /// Chooses for a call that cannot go where its key belongs, and always the same as long as that
    /// fits.
    fn detour(
        &self,
        key: &Key<'_>,
        home: u64,
        now: Instant,
        among: &Eligible<'_>,
    ) -> Option<usize> {
        let detour = self.keys.detour(home, among.call());
        let known = find(&self.detours, detour, now, among);
        if let Some(index) = fit(known, among) {
            return Some(index);
        }
        let index = highest_fit(key, among)?;
        if !among.is_dry() {
            let entry = self.entry(detour, key, index, among)?;
            self.detours.set(entry, now, |_| Some(ExpiryCause::Removed));
        }
        Some(index)
    }

    fn entry(
        &self,
        place: u64,
        key: &Key<'_>,
        index: usize,
        among: &Eligible<'_>,
    ) -> Option<Entry> {
        Some(Entry {
            key: place,
            kind: key.kind(),
            told: self.keys.told(key),
            set: among.call().tool().set().clone(),
            server: among.server(index)?.server().clone(),
            hint: among.place(index),
        })
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

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        let Some(key) = self.keys.of(among.call()) else {
            return self.fallback.next(among);
        };
        let (place, now) = (self.keys.place(&key, among.call()), Instant::now());
        let home = find(&self.homes, place, now, among);
        if let Some(index) = fit(home, among) {
            return Some(index);
        }
        let cause = match home {
            Found::Nothing => None,
            Found::Lost => Some(ExpiryCause::Removed),
            Found::At(at) => match lost(at, among) {
                None => return self.detour(&key, place, now, among),
                lost => lost,
            },
        };
        let index = highest_fit(&key, among)?;
        if !among.is_dry() {
            let entry = self.entry(place, &key, index, among)?;
            self.settle(entry, now, home, cause, among);
        }
        Some(index)
    }
}

fn find(table: &Table, key: u64, now: Instant, among: &Eligible<'_>) -> Found {
    table.find(key, now, among.is_dry(), |server, hint| {
        among.place_of(server, hint)
    })
}

/// Returns the number of a server that was found, if it fits.
fn fit(found: Found, among: &Eligible<'_>) -> Option<usize> {
    match found {
        Found::At(place) => among.index_of(place).filter(|index| among.fits(*index)),
        Found::Nothing | Found::Lost => None,
    }
}

/// Says why a server loses its keys, if it does: what speaks against it, speaks against it for every
/// call, and for some time.
fn lost(place: usize, among: &Eligible<'_>) -> Option<ExpiryCause> {
    match among.at(place)?.check(among.call()) {
        Err(Unfit::Draining) => Some(ExpiryCause::Draining),
        Err(Unfit::Ejected) => Some(ExpiryCause::Ejected),
        Err(Unfit::Unreachable) => Some(ExpiryCause::Unreachable),
        _ => None,
    }
}

/// Returns the number of the server that ranks highest for a key among those that fit.
fn highest_fit(key: &Key<'_>, among: &Eligible<'_>) -> Option<usize> {
    let candidates = (0..among.len()).filter_map(|index| Some((index, among.candidate(index)?)));
    highest(key.digest(), candidates, |index| among.fits(index))
}
