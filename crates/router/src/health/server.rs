//! The health of one server: a word that is read without a lock, and what stands behind it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::ejection::Ejections;
use super::moment::Moment;
use super::outlier::{Mark, Window, worse_than};
use super::set::SetHealth;
use super::slow_start;
use super::state::{HealthChange, HealthState, HealthStatus, Presence, Start, Witness};
use super::verdict::{Risk, Verdict};
use super::word::{Generation, Word};

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

    /// Takes the outcome of a call, once for each that was sent; returns what it changed.
    #[inline]
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        verdict: Verdict,
        set: &SetHealth,
        now: impl FnOnce() -> Instant,
    ) -> Option<HealthChange> {
        let word = self.word();
        match (ticket, verdict) {
            (Ticket::Extra, _) | (Ticket::Plain(_), Verdict::Nothing) => None,
            (Ticket::Plain(generation) | Ticket::Probe(generation), _)
                if generation != word.generation() =>
            {
                None
            }
            (Ticket::Plain(generation), Verdict::Good) => {
                if self.faults.load(Ordering::Relaxed) != 0 {
                    self.faults.store(0, Ordering::Relaxed);
                }
                set.totals.count(false);
                let counts = set.config().outlier.is_some();
                if !counts && !word.has(Word::STARTING) {
                    return None;
                }
                let now = set.moment(now());
                if word.has(Word::STARTING) {
                    self.end_slow_start(set, now);
                }
                self.count(false, generation, set, now)
            }
            (Ticket::Plain(generation), Verdict::Fault) => {
                let now = set.moment(now());
                let faults = self.begin_or_go_on(set);
                let limit = set.config().faults;
                if limit > 0 && faults >= limit && !self.is_one_of_many(faults, set) {
                    let reason = || format!("{faults} faults in a row").into();
                    let change = self.eject(generation, set, now, reason);
                    if change.is_some() {
                        return change;
                    }
                }
                self.count(true, generation, set, now)
            }
            (Ticket::Probe(generation), verdict) => {
                self.end_probe(generation, verdict, set, set.moment(now()))
            }
        }
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

    /// Counts a call among those of its window, and holds that against the others' if it is time.
    fn count(
        &self,
        failed: bool,
        generation: Generation,
        set: &SetHealth,
        now: Moment,
    ) -> Option<HealthChange> {
        if set.config().outlier.is_some() && self.window.count(failed, now) {
            self.compare(generation, set, now)
        } else {
            None
        }
    }

    /// Counts a fault; returns how many there are in a row.
    fn begin_or_go_on(&self, set: &SetHealth) -> u32 {
        let before = self.faults.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            let mark = set.totals.mark();
            self.row_began.store(mark.0, Ordering::Relaxed);
        }
        set.totals.count(true);
        before.saturating_add(1)
    }

    /// Says whether most calls of the others failed, too, while its own did in a row: then what is
    /// wrong is not this server, and leaving it out helps nobody.
    #[cold]
    fn is_one_of_many(&self, faults: u32, set: &SetHealth) -> bool {
        let began = Mark(self.row_began.load(Ordering::Relaxed));
        set.totals.since(began).others_fail(faults)
    }

    #[cold]
    fn compare(
        &self,
        generation: Generation,
        set: &SetHealth,
        now: Moment,
    ) -> Option<HealthChange> {
        let (own, others) = {
            // whoever holds it does this, or changes more than this
            let _record = self.record.try_lock()?;
            let (own, all) = self.window.close(now, &set.totals, set.config())?;
            let others = worse_than(own, all, set.counts().servers, set.config())?;
            (own, others)
        };
        self.eject(generation, set, now, || {
            let (good, mean) = (own.percent(), others.percent());
            format!(
                "{good} % of {} calls ended well, {mean} % of the others'",
                own.calls
            )
            .into()
        })
    }

    /// Ejects it, unless it is ejected or away, or the set can spare nobody.
    #[cold]
    fn eject(
        &self,
        generation: Generation,
        set: &SetHealth,
        now: Moment,
        reason: impl FnOnce() -> Cow<'static, str>,
    ) -> Option<HealthChange> {
        let mut record = self.record.lock();
        let old = self.word();
        let is_fit = old.has(Word::MEMBER) && !old.has(Word::UNFIT);
        let is_now = old.generation() == generation;
        if !is_fit || !is_now || !record.home.as_ref()?.try_eject() {
            return None;
        }
        let reason = reason();
        let new = self.shut_out(old, &mut record, reason.clone(), set, now);
        // `try_eject` has counted it
        self.word.store(new.0, Ordering::Release);
        change(old, new, reason)
    }

    #[cold]
    fn end_probe(
        &self,
        generation: Generation,
        verdict: Verdict,
        set: &SetHealth,
        now: Moment,
    ) -> Option<HealthChange> {
        if verdict == Verdict::Nothing {
            self.give_back(generation);
            return None;
        }
        let mut record = self.record.lock();
        let old = self.word();
        if old.generation() != generation || !old.has(Word::PROBING) {
            return None;
        }
        let (new, reason) = match verdict {
            Verdict::Nothing => return None,
            Verdict::Good => {
                set.totals.count(false);
                let fit = old.without(Word::EJECTED | Word::PROBING);
                let new = self.let_in(fit, Start::Slow, &mut record, set, now);
                (new, "its probe succeeded")
            }
            Verdict::Fault if set.totals.since(record.ejected_at).others_fail(0) => {
                set.totals.count(true);
                let fit = old.without(Word::EJECTED | Word::PROBING);
                let new = self.let_in(fit, Start::Full, &mut record, set, now);
                (new, "its probe failed, and so do the others' calls")
            }
            Verdict::Fault => {
                set.totals.count(true);
                let reason = "its probe failed";
                let fit = old.without(Word::PROBING);
                let new = self.shut_out(fit, &mut record, reason.into(), set, now);
                (new, reason)
            }
        };
        self.set_word(new, &record);
        change(old, new, reason.into())
    }

    #[cold]
    fn end_slow_start(&self, set: &SetHealth, now: Moment) {
        let record = self.record.lock();
        let word = self.word();
        if word.has(Word::STARTING) && now.since(word.time()) >= set.config().slow_start {
            self.set_word(word.without(Word::STARTING).at(Moment(0)), &record);
        }
    }

    /// Makes the word of a server that is ejected from now on.
    fn shut_out(
        &self,
        word: Word,
        record: &mut Record,
        reason: Cow<'static, str>,
        set: &SetHealth,
        now: Moment,
    ) -> Word {
        let good = record.good_since.take().map(|since| now.since(since));
        let time = record.ejections.add(good.unwrap_or_default(), set.config());
        record.times_ejected = record.times_ejected.saturating_add(1);
        record.last_ejection = Some(reason);
        record.ejected_at = set.totals.mark();
        self.forget();
        word.without(Word::STARTING)
            .with(Word::EJECTED)
            .at(now.after(time))
            .next()
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
