//! One stored answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use callward_core::ToolOutput;
use tokio::time::Instant;

use super::account::Account;
use super::{Found, Hit};

/// One stored answer: what it is, when it was made and ends, and what it is worth.
///
/// A pointer: cloning copies no data, and all clones count their hits together.
///
/// ```
/// use std::time::Duration;
///
/// use tokio::time::Instant;
/// use callward_cache::Entry;
/// use callward_core::ToolOutput;
///
/// let (now, second) = (Instant::now(), Duration::from_secs(1));
/// let entry = Entry::new(ToolOutput::text("sunny"), 5 * second, now)
///     .with_cost(2 * second)
///     .with_stale(10 * second);
/// assert!(entry.is_fresh(now + 4 * second));
/// assert!(!entry.is_fresh(now + 5 * second));
/// assert!(entry.is_servable_stale(now + 14 * second));
/// assert!(!entry.is_servable_stale(now + 15 * second));
/// ```
#[derive(Debug, Clone)]
pub struct Entry(Arc<Inner>);

/// In this order: what a hit looks at is 64 bytes in a row, as much as a line of memory holds.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Inner {
    /// How often the entry was found, roughly: a hit lost to a race changes no decision.
    hits: AtomicU32,
    /// What `hits` was when the entry began the life it is in.
    hits_before: AtomicU32,
    /// Under which key a store keeps the entry, as two words; only ever written before that.
    key: [AtomicU64; 2],
    /// The end of the lifetime, which every hit looks at.
    ends: Instant,
    output: ToolOutput,
    /// Nanoseconds, as are the three below: half the size of a [`Duration`].
    cost: u64,
    /// Between `made` and `ends`, so that one of the two need not be kept.
    ttl: u64,
    stale: u64,
    /// What a call of the tool takes as a rule; 0 for "as this one".
    usual: u64,
    account: Option<Arc<Account>>,
    /// What the account was charged; 0 as long as no store has taken the entry in.
    charged: AtomicU64,
    /// The bits of an `f32`: how likely another hit was when that life began.
    odds: AtomicU32,
    stated: bool,
}

impl Entry {
    /// Keeps `output` for `ttl` from `now` on, a year at most. The body is copied, so that the
    /// buffer it came in is not kept along with it.
    #[must_use]
    pub fn new(output: ToolOutput, ttl: Duration, now: Instant) -> Self {
        Self(Arc::new(Inner {
            output: output.compact(),
            ends: now + Duration::from_nanos(nanos(ttl)),
            ttl: nanos(ttl),
            stale: 0,
            cost: 0,
            usual: 0,
            account: None,
            charged: AtomicU64::new(0),
            hits: AtomicU32::new(0),
            hits_before: AtomicU32::new(0),
            odds: AtomicU32::new(DEFAULT_ODDS.to_bits()),
            stated: false,
            key: Default::default(),
        }))
    }

    /// Sets how much upstream time a hit saves. Default: none.
    #[must_use]
    pub fn with_cost(self, cost: Duration) -> Self {
        self.with(|inner| inner.cost = nanos(cost))
    }

    /// Sets how long a call takes as a rule, which decides how long the entry is kept under
    /// pressure: one that took long by accident is not worth more. Default: the cost.
    #[must_use]
    pub fn with_usual_cost(self, usual: Duration) -> Self {
        self.with(|inner| inner.usual = nanos(usual))
    }

    /// Sets for how long after its end the entry may still be served, marked as stale, a year at
    /// most. Default: not at all.
    #[must_use]
    pub fn with_stale(self, stale: Duration) -> Self {
        self.with(|inner| inner.stale = nanos(stale))
    }

    /// Notes that the server stated the lifetime. Default: it did not.
    #[must_use]
    pub fn with_stated(self, stated: bool) -> Self {
        self.with(|inner| inner.stated = stated)
    }

    /// Sets how likely it is that the entry will be hit at all: of all results of its tool that
    /// were stored, the share that was. Below 1/32 it counts as 1/32, above 1/2 as 1/2. Default:
    /// 1/4.
    #[must_use]
    pub fn with_odds(self, odds: f32) -> Self {
        let odds = if odds.is_nan() { DEFAULT_ODDS } else { odds };
        let odds = odds.clamp(1.0 / 32.0, 0.5);
        self.with(|inner| inner.odds = AtomicU32::new(odds.to_bits()))
    }

    /// Names the account that the entry counts on from when a store takes it in. Default: none.
    #[must_use]
    pub fn with_account(self, account: Arc<Account>) -> Self {
        self.with(|inner| inner.account = Some(account))
    }

    /// Returns the answer.
    #[must_use]
    pub fn output(&self) -> &ToolOutput {
        &self.0.output
    }

    /// Returns how long the entry lives in all.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_nanos(self.0.ttl)
    }

    /// Returns for how long after its end the entry may still be served.
    #[must_use]
    pub fn stale(&self) -> Duration {
        Duration::from_nanos(self.0.stale)
    }

    /// Returns how much upstream time a hit saves.
    #[must_use]
    pub fn cost(&self) -> Duration {
        Duration::from_nanos(self.0.cost)
    }

    /// Returns how much upstream time a hit saves as a rule.
    #[must_use]
    pub fn usual_cost(&self) -> Duration {
        match self.0.usual {
            0 => self.cost(),
            usual => Duration::from_nanos(usual),
        }
    }

    /// Returns the account the entry counts on, if it has one.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        self.0.account.as_deref()
    }

    /// Returns when the entry was made.
    #[must_use]
    pub fn made(&self) -> Instant {
        self.0.ends - Duration::from_nanos(self.0.ttl)
    }

    /// Returns how long ago the entry was made.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.made())
    }

    /// Says whether the entry has not ended yet.
    #[must_use]
    pub fn is_fresh(&self, now: Instant) -> bool {
        now < self.0.ends
    }

    /// Says whether the entry may be served at all: as fresh, or marked as stale.
    #[must_use]
    pub fn is_servable_stale(&self, now: Instant) -> bool {
        self.age(now) < self.ttl() + self.stale()
    }

    /// Returns the answer, unless the entry has ended.
    #[must_use]
    pub fn into_fresh(self, now: Instant) -> Option<ToolOutput> {
        self.is_fresh(now).then(|| self.0.output.clone())
    }

    /// Returns what a call takes of the entry that has just found it.
    #[must_use]
    pub fn look(&self, now: Instant) -> Found {
        match self.0.hit(now) {
            Some(hit) => Found::Fresh(hit),
            None => Found::Ended(self.clone()),
        }
    }

    /// Returns how many bytes the entry takes: its body, and what it is wrapped in. A store adds
    /// what it spends itself on an entry.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.output.body().len() as u64 + WRAPPING
    }

    /// Returns how often the entry was found since it was made. Hits that race may count as one.
    #[must_use]
    pub fn hits(&self) -> u32 {
        self.0.hits.load(Ordering::Relaxed)
    }

    /// Counts a hit. Stores call it when they find the entry.
    #[inline]
    pub fn touch(&self) {
        self.0.touch();
    }

    /// Puts the entry on its account, if it has one. Stores call it when they take the entry in,
    /// with all that they spend on it; only the first time counts.
    pub fn charge(&self, bytes: u64) {
        let Some(account) = &self.0.account else {
            return;
        };
        let first =
            self.0
                .charged
                .compare_exchange(0, bytes.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            account.add(bytes.max(1));
        }
    }

    /// Takes the entry off its account. Stores call it when they drop the entry; its memory is free
    /// when the last copy is dropped, which may be later.
    pub fn discharge(&self) {
        let charged = self.0.charged.swap(0, Ordering::Relaxed);
        if let (Some(account), 1..) = (&self.0.account, charged) {
            account.take_out(charged);
        }
    }

    /// Notes under which key the entry is kept. One that is kept under another already is copied.
    pub(super) fn keyed(self, key: u128) -> Self {
        let is_free = self.key() == 0;
        if !is_free && self.key() != key {
            return Self(Arc::new(self.0.copy())).keyed(key);
        }
        #[expect(clippy::cast_possible_truncation, reason = "each half is taken")]
        let words = [key as u64, (key >> 64) as u64];
        for (place, word) in self.0.key.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self
    }

    /// Says whether both are the same entry.
    pub(super) fn is(&self, other: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.0, other)
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    pub(super) fn key(&self) -> u128 {
        self.0.key()
    }

    /// Returns how often the entry was found in the life it is in.
    pub(super) fn hits_in_this_life(&self) -> u32 {
        let before = self.0.hits_before.load(Ordering::Relaxed);
        self.hits().saturating_sub(before)
    }

    /// Returns how likely another hit was when the life it is in began.
    pub(super) fn odds(&self) -> f32 {
        f32::from_bits(self.0.odds.load(Ordering::Relaxed))
    }

    /// Begins another life, in which another hit is this likely.
    pub(super) fn begin_life(&self, odds: f32) {
        self.0.hits_before.store(self.hits(), Ordering::Relaxed);
        self.0.odds.store(odds.to_bits(), Ordering::Relaxed);
    }

    /// Changes an entry that is being made; one that is already shared is copied first.
    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if Arc::get_mut(&mut self.0).is_none() {
            self = Self(Arc::new(self.0.copy()));
        }
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            change(inner);
        }
        self
    }
}

impl From<Arc<Inner>> for Entry {
    fn from(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
}

impl Inner {
    pub(super) fn key(&self) -> u128 {
        let [low, high] = self.key.each_ref().map(|word| word.load(Ordering::Relaxed));
        u128::from(high) << 64 | u128::from(low)
    }

    pub(super) fn hits(&self) -> u32 {
        self.hits.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn touch(&self) {
        // Two steps, not one: a locked instruction costs more than the whole rest of the count, and
        // all that is ever asked is whether there were none, one or more.
        let hits = self.hits.load(Ordering::Relaxed);
        self.hits.store(hits.saturating_add(1), Ordering::Relaxed);
    }

    /// Returns what a hit takes, unless the entry has ended.
    #[inline]
    pub(super) fn hit(&self, now: Instant) -> Option<Hit> {
        (now < self.ends).then(|| Hit {
            output: self.output.clone(),
            cost: self.cost,
            number: self.hits(),
            stated: self.stated,
            ends: self.ends,
            ttl: self.ttl,
        })
    }

    /// A copy has not been found yet, and is on nobody's account yet.
    fn copy(&self) -> Self {
        Self {
            output: self.output.clone(),
            ends: self.ends,
            ttl: self.ttl,
            stale: self.stale,
            cost: self.cost,
            usual: self.usual,
            account: self.account.clone(),
            charged: AtomicU64::new(0),
            hits: AtomicU32::new(0),
            hits_before: AtomicU32::new(0),
            odds: AtomicU32::new(self.odds.load(Ordering::Relaxed)),
            stated: self.stated,
            key: Default::default(),
        }
    }
}

impl Drop for Inner {
    /// For stores that are dropped as a whole.
    fn drop(&mut self) {
        let charged = *self.charged.get_mut();
        if let (Some(account), 1..) = (&self.account, charged) {
            account.take_out(charged);
        }
    }
}

/// Of results nothing is known about, one in four is taken to be asked for again.
const DEFAULT_ODDS: f32 = 0.25;

/// What a body is wrapped in: this struct and the answer, each with its two counts, and the head of the
/// shared bytes.
const WRAPPING: u64 = (size_of::<Inner>() + ANSWER + 4 * size_of::<usize>() + 24) as u64;

/// What a [`ToolOutput`] points to.
const ANSWER: usize = 48;

/// A year at most: what anybody means by an endless lifetime, and far from any overflow.
fn nanos(duration: Duration) -> u64 {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    u64::try_from(duration.min(YEAR).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry::new(
            ToolOutput::text("x"),
            Duration::from_secs(1),
            Instant::now(),
        )
    }

    #[test]
    fn an_account_is_charged_once_and_until_the_last_copy_is_gone() {
        let account = Arc::new(Account::default());
        let first = entry().with_account(account.clone());
        assert_eq!((account.entries(), account.bytes()), (0, 0));
        first.charge(700);
        first.charge(900);
        let second = first.clone();
        drop(first);
        assert_eq!((account.entries(), account.bytes()), (1, 700));
        drop(second);
        assert_eq!((account.entries(), account.bytes()), (0, 0));
    }

    #[test]
    fn a_shared_entry_is_copied_before_it_is_changed() {
        let account = Arc::new(Account::default());
        let first = entry().with_account(account.clone());
        first.charge(700);
        first.touch();
        let second = first.clone().with_cost(Duration::from_secs(9));
        assert_eq!(first.cost(), Duration::ZERO);
        assert_eq!((second.hits(), first.hits()), (0, 1));
        drop(second);
        assert_eq!((account.entries(), account.bytes()), (1, 700));
    }

    #[test]
    fn an_endless_lifetime_does_not_overflow() {
        let now = Instant::now();
        let entry = Entry::new(ToolOutput::text("x"), Duration::MAX, now).with_stale(Duration::MAX);
        assert!(entry.is_fresh(now));
        assert!(entry.is_servable_stale(now));
    }

    #[test]
    fn hits_are_counted_by_life() {
        let entry = entry();
        entry.touch();
        entry.touch();
        assert_eq!(entry.hits_in_this_life(), 2);
        entry.begin_life(0.5);
        assert_eq!((entry.hits_in_this_life(), entry.hits()), (0, 2));
        entry.touch();
        assert_eq!(entry.hits_in_this_life(), 1);
    }

    #[test]
    fn odds_are_kept_between_a_rumour_and_a_coin() {
        let odds = |odds| entry().with_odds(odds).odds();
        assert_eq!(odds(0.0), 1.0 / 32.0);
        assert_eq!(odds(0.3), 0.3);
        assert_eq!(odds(9.0), 0.5);
        assert_eq!(odds(f32::NAN), 0.25);
    }
}
