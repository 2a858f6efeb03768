//! What is counted while the world runs, and what comes of it.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use crate::policies::Policy;
use crate::world::{Scenario, Size};

/// What happened since the figures are taken.
#[derive(Debug)]
pub(crate) struct Tally {
    from: Duration,
    until: Duration,
    /// Of each server: calls that arrived, and how long its workers were busy with them.
    calls: Vec<u64>,
    busy: Vec<Duration>,
    /// Second by second: calls that arrived at servers that are struck, and at any.
    struck: Vec<(u64, u64)>,
    /// How long answered calls took.
    took: Vec<Duration>,
    failed: u64,
}

impl Tally {
    pub(crate) fn new(size: &Size) -> Self {
        Self {
            from: size.turn(),
            until: size.length,
            calls: vec![0; size.servers],
            busy: vec![Duration::ZERO; size.servers],
            struck: vec![(0, 0); whole(size.length)],
            took: Vec::new(),
            failed: 0,
        }
    }

    /// Counts a call that reached a server, which works on it for so long.
    pub(crate) fn arrived(
        &mut self,
        server: usize,
        is_struck: bool,
        now: Duration,
        work: Range<Duration>,
    ) {
        if let Some((struck, all)) = self.struck.get_mut(whole(now)) {
            *struck += u64::from(is_struck);
            *all += 1;
        }
        self.calls[server] += u64::from(now >= self.from);
        let (start, end) = (work.start.max(self.from), work.end.min(self.until));
        self.busy[server] += end.saturating_sub(start);
    }

    /// Counts a call that came to its end.
    pub(crate) fn done(&mut self, issued: Duration, ended: Duration, answered: bool) {
        if issued < self.from {
            return;
        }
        if answered {
            self.took.push(ended.saturating_sub(issued));
        } else {
            self.failed += 1;
        }
    }
}

/// What one policy made of one scenario, from the moment on at which something happens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) scenario: &'static str,
    pub(crate) servers: usize,
    pub(crate) policy: String,
    pub(crate) seed: u64,
    pub(crate) calls: u64,
    /// Within what time half of the calls, 99 of 100 and 999 of 1,000 were answered. None: never,
    /// because more of them failed. To leave those out would make a strategy look quick that sends
    /// calls where they fail.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
    /// Calls that were not answered, over all.
    pub(crate) failed: f64,
    /// The most that one server had, over the mean: calls, and time at work.
    pub(crate) most_calls: f64,
    pub(crate) most_busy: f64,
    /// Calls to servers that were struck, as a multiple of what they would get if all got the same.
    pub(crate) struck: f64,
    /// The same, second by second of the whole run.
    pub(crate) struck_by_second: Vec<f64>,
    /// Within how many milliseconds a share of the calls was answered, for each of [`SHARES`].
    pub(crate) tail_ms: Vec<Option<f64>>,
}

impl Figures {
    pub(crate) fn of(
        mut tally: Tally,
        size: &Size,
        scenario: Scenario,
        policy: Policy,
        seed: u64,
    ) -> Self {
        tally.took.sort_unstable();
        let took = &tally.took;
        let calls = took.len() as u64 + tally.failed;
        let within = |share: f64| {
            let last = took.get((calls as f64 * share) as usize)?;
            Some(last.as_secs_f64() * 1e3)
        };
        let numbers = 0..size.servers;
        let struck = numbers.filter(|number| scenario.strikes(*number)).count();
        let fair = struck as f64 / size.servers as f64;
        let multiple =
            |part: u64, of: u64| part as f64 / of.max(1) as f64 / fair.max(f64::MIN_POSITIVE);
        let seconds = || tally.struck.iter().skip(whole(size.turn()));
        let busy: Vec<_> = tally.busy.iter().map(Duration::as_secs_f64).collect();
        let arrived: Vec<_> = tally.calls.iter().map(|calls| *calls as f64).collect();
        Self {
            scenario: scenario.name(),
            servers: size.servers,
            policy: policy.name(),
            seed,
            calls,
            p50_ms: within(0.5),
            p99_ms: within(0.99),
            p999_ms: within(0.999),
            failed: tally.failed as f64 / calls.max(1) as f64,
            most_calls: most_over_mean(&arrived),
            most_busy: most_over_mean(&busy),
            struck: multiple(
                seconds().map(|(struck, _)| struck).sum(),
                seconds().map(|(_, all)| all).sum(),
            ),
            struck_by_second: tally
                .struck
                .iter()
                .map(|(struck, all)| multiple(*struck, *all))
                .collect(),
            tail_ms: SHARES.map(within).to_vec(),
        }
    }
}

fn whole(at: Duration) -> usize {
    usize::try_from(at.as_secs()).unwrap_or(usize::MAX)
}

fn most_over_mean(of: &[f64]) -> f64 {
    let mean = of.iter().sum::<f64>() / of.len().max(1) as f64;
    of.iter().copied().fold(0.0, f64::max) / mean.max(f64::MIN_POSITIVE)
}

/// From half of the calls to 9,998 of 10,000.
pub(crate) const SHARES: [f64; 14] = [
    0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999,
];
