//! The health of one server: a word that is read without a lock, and what stands behind it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::ejection::Ejections;
use super::moment::Moment;
use super::outlier::{Mark, Window};
use super::set::SetHealth;
use super::slow_start;
use super::state::{HealthChange, HealthState, HealthStatus, Presence, Start, Witness};
use super::verdict::Risk;
use super::word::{Generation, Word};

mod outcome;

/// The health of one server.
///
/// A choice reads `word`. A good call reads it too and writes to counters; only what changes how the
/// server is takes the lock, under which alone `word` is written.
///
/// In this order: the word is to be beside what else a choice reads of a server.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct ServerHealth {
    word: AtomicU64,
    /// In a row.
    faults: AtomicU32,
    /// Where the set was when the row began, as a [`Mark`].
    row_began: AtomicU64,
    window: Window,
    record: Mutex<Record>,
}

/// What nobody needs who chooses.
#[derive(Debug, Default)]
struct Record {
    ejections: Ejections,
    times_ejected: u64,
    last_ejection: Option<Cow<'static, str>>,
    /// Since when nothing was held against it.
    good_since: Option<Moment>,
    /// Where the set was when it was ejected.
    ejected_at: Mark,
    /// The set that counts it.
    home: Option<Arc<SetHealth>>,
}

/// Why a server is not to be chosen, as its health goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    Ejected,
    HeldDown,
    Unreachable,
}

/// How the outcome of a call will count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ticket {
    /// As one of many.
    Plain(Generation),
    /// It decides whether the server is let in again.
    Probe(Generation),
    /// Not at all: it was sent although the server is in doubt, for want of a better one.
    Extra,
}

impl ServerHealth {
    /// Returns what speaks against sending it such a call, if anything does.
    ///
    /// One load for a server that is fit; the time is only asked for one that is ejected. Once an
    /// ejection is over, one call is let through to find out; a write that must not run twice is only
    /// let through when no other call came for another while.
    #[inline]
    pub(crate) fn doubt(
        &self,
        risk: Risk,
        set: &SetHealth,
        now: impl FnOnce() -> Instant,
    ) -> Option<Doubt> {
        let word = self.word();
        if !word.has(Word::UNFIT) {
            return None;
        }
        away(word).or_else(|| {
            let now = set.moment(now());
            (!is_due(word, risk, set, now)).then_some(Doubt::Ejected)
        })
    }

    /// Returns the part of its share of calls that it is to get: 1 but for slow start.
    #[inline]
    pub(crate) fn share(&self, set: &SetHealth, now: impl FnOnce() -> Instant) -> f64 {
        let word = self.word();
        if !word.has(Word::STARTING) {
            return 1.0;
        }
        slow_start::share(set.moment(now()).since(word.time()), set.config())
    }

    /// Takes note of a call that is about to be sent. If the server is due for a probe, the call is
    /// it; somebody else's may have been a moment before, and then there is doubt again.
    ///
    /// # Errors
    ///
    /// [`Doubt`]: what speaks against it. [`Ticket::Extra`] is for a call that is sent all the same.
    #[inline]
    pub(crate) fn admit(
        &self,
        risk: Risk,
        set: &SetHealth,
        now: impl FnOnce() -> Instant,
    ) -> Result<Ticket, Doubt> {
        let word = self.word();
        let is_known = risk == Risk::Write || word.has(Word::SAFE);
        if is_known && !word.has(Word::UNFIT) {
            return Ok(Ticket::Plain(word.generation()));
        }
        self.admit_slowly(risk, set, now)
    }

    #[cold]
    fn admit_slowly(
        &self,
        risk: Risk,
        set: &SetHealth,
        now: impl FnOnce() -> Instant,
    ) -> Result<Ticket, Doubt> {
        let record = self.record.lock();
        let mut word = self.word();
        if risk == Risk::Safe && !word.has(Word::SAFE) {
            word = word.with(Word::SAFE);
            self.set_word(word, &record);
        }
        if let Some(doubt) = away(word) {
            return Err(doubt);
        }
        if !word.has(Word::EJECTED) {
            return Ok(Ticket::Plain(word.generation()));
        }
        let now = set.moment(now());
        if !is_due(word, risk, set, now) {
            return Err(Doubt::Ejected);
        }
        // a probe that was here before is written off: its outcome does not count any more
        let until = now.after(set.config().eject_time);
        let probing = word.next().with(Word::PROBING).at(until);
        self.set_word(probing, &record);
        Ok(Ticket::Probe(probing.generation()))
    }

    /// Gives the place of a probe back that had no outcome.
    #[cold]
    pub(crate) fn give_back(&self, probe: Generation) {
        let record = self.record.lock();
        let word = self.word();
        let is_its = word.generation() == probe && word.has(Word::PROBING);
        if let Some(home) = record.home.as_ref().filter(|_| is_its) {
            let now = home.moment(Instant::now());
            self.set_word(word.without(Word::PROBING).at(now), &record);
        }
    }

    /// Takes note that somebody says the server is there, or is not; returns what that changed.
    pub(crate) fn witness(
        &self,
        who: Witness,
        presence: Presence,
        set: &SetHealth,
        now: Instant,
    ) -> Option<HealthChange> {
        let mut record = self.record.lock();
        let old = self.word();
        let up = presence == Presence::Up;
        if old.has(who.flag()) != up {
            return None; // nothing new
        }
        let mut new = old.with(who.flag());
        if up {
            new = old.without(who.flag());
            if who == Witness::Connection && new.has(Word::EJECTED) {
                // what it was ejected for belongs to a connection that is gone
                new = new.without(Word::EJECTED | Word::PROBING);
            }
            if !new.has(Word::UNFIT) {
                let now = set.moment(now);
                new = self.let_in(new, Start::Slow, &mut record, set, now);
            }
        }
        self.set_word(new, &record);
        change(old, new, who.reason(presence).into())
    }

    /// Counts it in this set from now on, with nothing held against it but what witnesses say. One
    /// that joins others gets less than its share at first.
    pub(crate) fn join(&self, set: &Arc<SetHealth>, start: Start, now: Instant) {
        let mut record = self.record.lock();
        let old = self.word();
        if old.has(Word::MEMBER) || !set.has_room() {
            return;
        }
        let now = set.moment(now);
        *record = Record {
            home: Some(set.clone()),
            good_since: Some(now),
            ..Record::default()
        };
        let mut new = old.without(Word::EJECTED | Word::PROBING | Word::STARTING);
        new = self.let_in(new, start, &mut record, set, now);
        self.set_word(new.with(Word::MEMBER), &record);
    }

    /// Ends its membership.
    pub(crate) fn leave(&self) {
        let mut record = self.record.lock();
        self.set_word(self.word().without(Word::MEMBER), &record);
        record.home = None;
    }

    /// Returns how it is.
    pub(crate) fn state(&self, set: &SetHealth, now: Instant) -> HealthState {
        let word = self.word();
        match HealthState::of(word) {
            HealthState::SlowStart if self.share(set, || now) >= 1.0 => HealthState::Healthy,
            state => state,
        }
    }

    /// Returns all that is known of it.
    pub(crate) fn status(&self, set: &SetHealth, now: Instant) -> HealthStatus {
        let record = self.record.lock();
        let word = self.word();
        let ejected = word.has(Word::EJECTED);
        let share = self.share(set, || now) * 100.0;
        HealthStatus {
            state: self.state(set, now),
            faults_in_a_row: self.faults.load(Ordering::Relaxed),
            ejections: record.times_ejected,
            last_ejection: record.last_ejection.clone(),
            time_to_probe: ejected.then(|| word.time().since(set.moment(now))),
            // from 1 to 100
            share_percent: share.round() as u32,
        }
    }

    /// Makes the word of a server that is fit from now on.
    fn let_in(
        &self,
        word: Word,
        start: Start,
        record: &mut Record,
        set: &SetHealth,
        now: Moment,
    ) -> Word {
        record.good_since = Some(now);
        self.forget();
        if start == Start::Full || set.config().slow_start.is_zero() {
            word.without(Word::STARTING).at(Moment(0)).next()
        } else {
            word.with(Word::STARTING).at(now).next()
        }
    }

    /// Outcomes from before do not count.
    fn forget(&self) {
        self.faults.store(0, Ordering::Relaxed);
        self.window.clear();
    }

    #[inline]
    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Under the lock only, so that the set counts changes in their order.
    fn set_word(&self, word: Word, record: &Record) {
        let old = Word(self.word.swap(word.0, Ordering::AcqRel));
        if let Some(home) = &record.home {
            home.changed(old, word);
        }
    }
}

fn away(word: Word) -> Option<Doubt> {
    if word.has(Word::HELD) {
        Some(Doubt::HeldDown)
    } else if word.has(Word::AWAY) {
        Some(Doubt::Unreachable)
    } else {
        None
    }
}

/// Says whether an ejected server may get such a call to find out how it is.
///
/// As the breakers have it: the outcome may stay unknown, which harms no read. So a write waits for a
/// read to go first, for one more ejection time; but not where no such call was ever seen, and not for
/// ever: nobody may ever read again.
fn is_due(word: Word, risk: Risk, set: &SetHealth, now: Moment) -> bool {
    let waits = risk == Risk::Write && word.has(Word::SAFE);
    let grace = if waits {
        set.config().eject_time
    } else {
        Duration::ZERO
    };
    now >= word.time().after(grace)
}

fn change(old: Word, new: Word, reason: Cow<'static, str>) -> Option<HealthChange> {
    let (from, to) = (HealthState::of(old), HealthState::of(new));
    (from != to).then_some(HealthChange { from, to, reason })
}

#[cfg(test)]
mod tests;
