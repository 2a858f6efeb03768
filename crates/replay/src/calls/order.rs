//! Sorts calls by the time they began.
//!
//! A line is written when a call ends, so lines of concurrent calls are out of order. Where times
//! are recorded, a bounded number of lines is read ahead and sorted; without times, the order of
//! the lines counts.

use std::collections::{BTreeMap, HashMap};
use std::iter::Fuse;
use std::time::Duration;

use super::place::Place;
use crate::ReplayError;
use crate::trace::RecordedCall;

/// A call and its start time.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) call: RecordedCall,
    pub(crate) place: Place,
    /// Since the start of the replay; `None` if no time is recorded.
    pub(crate) at: Option<Duration>,
}

/// The number of lines that are read ahead.
const AHEAD: usize = 1_024;

/// A clock may count from any moment, such as the epoch. It starts at most this long before its
/// first line: later lines may have calls that began earlier.
const LEAD: Duration = Duration::from_secs(600);

/// The latest time, so that no clock overflows.
const LATEST: Duration = Duration::from_secs(50 * 365 * 24 * 3600);

/// Calls in the order of their start.
#[derive(Debug)]
pub(crate) struct InOrder<I> {
    lines: Fuse<I>,
    share_sessions: bool,
    /// By the start of each call, then by its line.
    ahead: BTreeMap<(Duration, u64), Timed>,
    /// For each recorded clock, its first time less the lead, and the same moment in the replay.
    clocks: HashMap<u128, (Duration, Duration)>,
    latest: Duration,
    read: u64,
}

impl<I: Iterator<Item = Result<RecordedCall, ReplayError>>> InOrder<I> {
    pub(crate) fn new(lines: I, share_sessions: bool) -> Self {
        Self {
            lines: lines.fuse(),
            share_sessions,
            ahead: BTreeMap::new(),
            clocks: HashMap::new(),
            latest: Duration::ZERO,
            read: 0,
        }
    }

    fn take_in(&mut self, call: RecordedCall) {
        let place = Place::of(&call, self.share_sessions);
        let at = call.at_ms.map(|at| self.place_in_time(place.clock, at));
        self.latest = self.latest.max(at.unwrap_or_default());
        self.read += 1;
        let turn = (at.unwrap_or(self.latest), self.read);
        self.ahead.insert(turn, Timed { call, place, at });
    }

    fn place_in_time(&mut self, clock: u128, at: Duration) -> Duration {
        let starts = (at.saturating_sub(LEAD), self.latest);
        let (first, ours) = self.clocks.entry(clock).or_insert(starts);
        ours.saturating_add(at.saturating_sub(*first)).min(LATEST)
    }
}

impl<I: Iterator<Item = Result<RecordedCall, ReplayError>>> Iterator for InOrder<I> {
    type Item = Result<Timed, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ahead.len() < AHEAD {
            match self.lines.next() {
                Some(Ok(call)) => self.take_in(call),
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        self.ahead.pop_first().map(|(_, timed)| Ok(timed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lines: &[&str]) -> Vec<(String, Option<u64>)> {
        let read = lines
            .iter()
            .map(|line| Ok(RecordedCall::from_line(line.as_bytes()).unwrap()));
        InOrder::new(read, false)
            .map(|timed| {
                let timed = timed.unwrap();
                let at = timed.at.map(|at| at.as_secs());
                (timed.call.tool.to_string(), at)
            })
            .collect()
    }

    fn owned(want: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
        want.iter()
            .map(|(tool, at)| ((*tool).to_owned(), *at))
            .collect()
    }

    #[test]
    fn without_times_the_order_of_the_lines_counts() {
        let lines = [r#"{"tool":"b"}"#, r#"{"tool":"a"}"#, r#"{"tool":"c"}"#];
        let want = [("b", None), ("a", None), ("c", None)];
        assert_eq!(order(&lines), owned(&want));
    }

    #[test]
    fn with_times_calls_are_sorted_by_their_start() {
        let lines = [
            r#"{"tool":"short","set":"s","session":"1","at_ms":2000}"#,
            r#"{"tool":"long","set":"s","session":"2","at_ms":1000}"#,
            r#"{"tool":"next","set":"s","session":"1","at_ms":9000}"#,
        ];
        let want = [("long", Some(1)), ("short", Some(2)), ("next", Some(9))];
        assert_eq!(order(&lines), owned(&want));
    }

    #[test]
    fn separate_sessions_have_separate_clocks_in_sequence() {
        let lines = [
            r#"{"tool":"a","session":"1","at_ms":0}"#,
            r#"{"tool":"b","session":"1","at_ms":9000}"#,
            r#"{"tool":"c","session":"2","at_ms":1000}"#,
            r#"{"tool":"d","session":"3","at_ms":1700000000000}"#,
        ];
        let want = [
            ("a", Some(0)),
            ("b", Some(9)),
            ("c", Some(10)),
            ("d", Some(10 + LEAD.as_secs())),
        ];
        assert_eq!(order(&lines), owned(&want));
    }
}
