//! What is counted while the world runs, and what comes of it.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use crate::clients::Run;
use crate::world::{Outage, Size};

/// What happened, second by second and set by set.
pub(crate) struct Tally {
    sets: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Each as `second * sets + set`.
    offered: Vec<u32>,
    attempts: Vec<u32>,
    /// By when they were answered.
    answered: Vec<u32>,
    calls: Vec<Done>,
}

/// One call, come to its end.
#[derive(Debug, Clone, Copy)]
struct Done {
    second: usize,
    set: usize,
    /// How long it took, if it was answered.
    took: Option<Duration>,
}

impl Tally {
    pub(crate) fn new(size: &Size) -> Self {
        Self {
            sets: size.sets,
            counts: Mutex::new(Counts::default()),
        }
    }

    fn count(&self, of: impl FnOnce(&mut Counts) -> &mut Vec<u32>, set: usize, at: Duration) {
        let place = whole(at) * self.sets + set;
        let mut counts = self.counts.lock();
        let list = of(&mut counts);
        if list.len() <= place {
            list.resize(place + 1, 0);
        }
        list[place] += 1;
    }

    /// Counts an attempt that reaches a server of the set; returns when that is.
    pub(crate) fn attempt(&self, set: usize, epoch: Instant) -> Duration {
        let now = epoch.elapsed();
        self.count(|counts| &mut counts.attempts, set, now);
        now
    }

    pub(crate) fn offered(&self, set: usize, at: Duration) {
        self.count(|counts| &mut counts.offered, set, at);
    }

    /// Counts a call that came to its end: answered, or not.
    pub(crate) fn done(&self, set: usize, issued: Duration, ended: Duration, answered: bool) {
        if answered {
            self.count(|counts| &mut counts.answered, set, ended);
        }
        self.counts.lock().calls.push(Done {
            second: whole(issued),
            set,
            took: answered.then(|| ended.saturating_sub(issued)),
        });
    }
}

/// What one policy made of one outage; or, where none happened, what it would be compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) outage: &'static str,
    pub(crate) happened: bool,
    pub(crate) policy: &'static str,
    pub(crate) seed: u64,
    /// Calls of all sets, over the whole run.
    pub(crate) offered: u64,
    /// Of the sets that are struck, calls answered over calls offered, by when they were offered:
    /// while the outage lasts, and in the last third of what follows.
    pub(crate) answered_during: f64,
    pub(crate) answered_at_last: f64,
    /// Of the sets that are struck, attempts over calls offered: while the outage lasts, from its
    /// begin to the end of the run, and in the worst ten seconds.
    pub(crate) amplification: f64,
    pub(crate) amplification_after: f64,
    pub(crate) amplification_worst: f64,
    /// Seconds from the end of the outage until nine of ten calls to the struck sets are answered,
    /// in that second and each after it. None: not before the end of the run.
    pub(crate) recovered_after_secs: Option<f64>,
    /// Seconds until the last breaker lets a probe through, as of the end of the outage.
    pub(crate) open_secs: Option<f64>,
    /// Answer times of calls offered from the begin of the outage on, as the longest of 99 in 100,
    /// in milliseconds: of sets on the same machines as what is struck, and of all others that are
    /// not.
    pub(crate) neighbours_p99_ms: f64,
    pub(crate) others_p99_ms: f64,
    /// Calls to sets that are not struck and were not answered, over all those.
    pub(crate) others_failed: f64,
    /// Answers of the struck sets in each second.
    pub(crate) goodput: Vec<u32>,
}

impl Figures {
    pub(crate) fn of(run: &Run, outage: Outage) -> Self {
        let size = &run.size;
        let counts = run.tally.counts.lock();
        let neighbours = outage.neighbours(size);
        let struck = |set: usize| outage.strikes(set);
        let sum = |list: &[u32], seconds: std::ops::Range<usize>| -> u64 {
            let inside = list.iter().enumerate().filter(|(place, _)| {
                seconds.contains(&(place / size.sets)) && struck(place % size.sets)
            });
            inside.map(|(_, count)| u64::from(*count)).sum()
        };
        let begin = whole(size.quiet);
        let (end, all) = (begin + whole(size.outage), whole(size.length()));
        let amplified = |from: usize, to: usize| {
            share(
                sum(&counts.attempts, from..to),
                sum(&counts.offered, from..to),
            )
        };
        let worst = (0..all.saturating_sub(10)).map(|from| amplified(from, from + 10));
        let answered = |from: usize, to: usize| {
            let issued = || {
                counts
                    .calls
                    .iter()
                    .filter(|call| (from..to).contains(&call.second))
            };
            let issued = || issued().filter(|call| struck(call.set));
            let answered = issued().filter(|call| call.took.is_some()).count();
            share(answered as u64, issued().count() as u64)
        };
        let healthy = |set: usize| !struck(set);
        let p99 = |of: &dyn Fn(usize) -> bool| {
            let calls = counts
                .calls
                .iter()
                .filter(|call| call.second >= begin && of(call.set));
            let mut took: Vec<_> = calls.filter_map(|call| call.took).collect();
            took.sort_unstable();
            let last = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
            last.as_secs_f64() * 1e3
        };
        let others = || counts.calls.iter().filter(|call| healthy(call.set));
        let failed = others().filter(|call| call.took.is_none()).count();
        let last_third = all - (all - end) / 3;
        let goodput = (0..all).map(|second| sum(&counts.answered, second..second + 1));
        Self {
            outage: outage.name(),
            happened: run.outage == Some(outage),
            policy: run.policy.name(),
            seed: run.seed,
            offered: counts.offered.iter().map(|count| u64::from(*count)).sum(),
            answered_during: answered(begin, end),
            answered_at_last: answered(last_third, all),
            amplification: amplified(begin, end),
            amplification_after: amplified(begin, all),
            amplification_worst: worst.fold(0.0, f64::max),
            recovered_after_secs: recovery(&counts.calls, &struck, end, all),
            open_secs: run.open.map(|open| open.as_secs_f64()),
            neighbours_p99_ms: p99(&|set| neighbours[set]),
            others_p99_ms: p99(&|set| healthy(set) && !neighbours[set]),
            others_failed: share(failed as u64, others().count() as u64),
            goodput: goodput
                .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
                .collect(),
        }
    }
}

/// Seconds until nine of ten calls offered in a second are answered, in that second and ever after.
fn recovery(calls: &[Done], struck: &dyn Fn(usize) -> bool, end: usize, all: usize) -> Option<f64> {
    let mut seconds = vec![(0_u64, 0_u64); all + 1];
    for call in calls.iter().filter(|call| struck(call.set)) {
        if let Some((issued, answered)) = seconds.get_mut(call.second) {
            *issued += 1;
            *answered += u64::from(call.took.is_some());
        }
    }
    let is_bad = |second: &usize| {
        let (issued, answered) = seconds[*second];
        answered * 10 < issued * 9
    };
    let well = (end..all).rev().find(is_bad).map_or(end, |bad| bad + 1);
    (well < all).then(|| (well - end) as f64)
}

fn whole(at: Duration) -> usize {
    usize::try_from(at.as_secs()).unwrap_or(usize::MAX)
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        part as f64 / of as f64
    }
}
