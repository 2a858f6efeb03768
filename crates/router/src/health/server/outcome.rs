//! What the outcomes of calls change: faults in a row, windows, ejection, probes.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::{Record, ServerHealth, Ticket, change};
use crate::health::moment::Moment;
use crate::health::outlier::{Mark, worse_than};
use crate::health::set::SetHealth;
use crate::health::state::{HealthChange, Start};
use crate::health::verdict::Verdict;
use crate::health::word::{Generation, Word};

impl ServerHealth {
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
}
