//! Consecutive failures: which of them are one event, and how many speak against more than one
//! tool.

use std::time::Duration;

use tokio::time::Instant;

/// What is known of the cause of a failure.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fault {
    /// The digest of the tool that may be the only cause, if there is one.
    pub(crate) tool: Option<u128>,
    /// An earlier attempt of the call failed here.
    pub(crate) is_retry: bool,
}

/// Failures since the last success.
///
/// A failure is of the same event as the last one that counted if its call was admitted before that
/// one was known, if it is a retry of a call that failed here before, or if calls overlap and the
/// last one was just now. Each event counts once: a
/// server that dies with eight calls in flight has failed once, and one poisonous call opens
/// nothing.
///
/// Before a whole server, a lost connection may be caused by the tool that was called. Each tool
/// then counts once, and one tool alone never opens the breaker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streak {
    /// Failures that no single tool explains.
    certain: u32,
    /// The tools that may explain the others, each once.
    tools: Vec<u128>,
    /// How many failures have counted so far. It wraps, and is compared for equality only.
    pub(crate) known: u32,
    /// When a call last ended that overlapped with a later one.
    pub(crate) overlapped_at: Option<Instant>,
    /// When a failure last counted.
    counted_at: Option<Instant>,
}

/// Where calls overlap, what fails within this time is one event. Quick calls end before the next
/// one begins: among hundreds of answers a second, chance soon puts three failures in a row.
///
/// Model checks have no clock: there only the order counts.
pub(crate) const EVENT: Duration = Duration::from_millis(if cfg!(shuttle) { 0 } else { 100 });
/// How long calls are taken to overlap after two of them did.
const OVERLAP: Duration = Duration::from_secs(1);

impl Streak {
    /// Counts a failure of a call that was admitted when `known` failures were known, unless it is
    /// of the same event as the last one that counted.
    pub(crate) fn count(&mut self, fault: Fault, known: u32, now: Instant) {
        let within = |at: Option<Instant>, time| at.is_some_and(|at| now < at + time);
        let is_same_event = within(self.overlapped_at, OVERLAP) && within(self.counted_at, EVENT);
        let is_new = !fault.is_retry && known == self.known && !is_same_event;
        if is_new && self.add(fault.tool) {
            self.counted_at = Some(now);
        }
    }

    /// Adds a failure, and returns `true`, unless it is one more of the same tool.
    pub(crate) fn add(&mut self, tool: Option<u128>) -> bool {
        match tool {
            None => self.certain = self.certain.saturating_add(1),
            Some(tool) if !self.tools.contains(&tool) => self.tools.push(tool),
            // it adds no evidence about the server, so it must not hide another tool's failure
            Some(_) => return false,
        }
        self.known = self.known.wrapping_add(1);
        true
    }

    pub(crate) fn clear(&mut self) {
        self.certain = 0;
        self.tools.clear();
    }

    pub(crate) fn failures(&self) -> u32 {
        let tools = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
        self.certain.saturating_add(tools)
    }

    /// Returns `true` if there are failures and one tool may explain all of them.
    pub(crate) const fn is_one_tool(&self) -> bool {
        self.certain == 0 && self.tools.len() == 1
    }

    /// Returns `true` if `limit` failures speak against the server. A limit of 0 is never reached.
    pub(crate) fn reaches(&self, limit: u32) -> bool {
        limit > 0 && self.failures() >= limit && !self.is_one_tool()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const SURE: Fault = Fault {
        tool: None,
        is_retry: false,
    };

    fn streak(of: &[Option<u128>]) -> Streak {
        let mut streak = Streak::default();
        for tool in of {
            streak.add(*tool);
        }
        streak
    }

    #[test]
    fn a_success_does_not_make_an_old_event_a_new_one() {
        let (mut streak, now) = (Streak::default(), Instant::now());
        let before = streak.known;
        streak.count(SURE, before, now);
        streak.clear();
        streak.count(SURE, before, now);
        let is_retry = true;
        streak.count(Fault { is_retry, ..SURE }, streak.known, now);
        assert_eq!(streak.failures(), 0);
    }

    proptest! {
        /// Each tool counts once, and one alone is never enough.
        #[test]
        fn it_counts_like_a_set(
            of in prop::collection::vec(prop::option::weighted(0.8, 0_u128..4), 0..12),
            limit in 0_u32..8,
        ) {
            let mut found = streak(&of);
            let certain = of.iter().filter(|tool| tool.is_none()).count();
            let tools: HashSet<_> = of.iter().flatten().collect();
            prop_assert_eq!(found.failures() as usize, certain + tools.len());
            let alone = certain == 0 && tools.len() == 1;
            prop_assert_eq!(found.is_one_tool(), alone);
            let enough = certain + tools.len() >= limit as usize;
            prop_assert_eq!(found.reaches(limit), limit > 0 && enough && !alone);
            found.clear();
            prop_assert!(found.failures() == 0 && !found.is_one_tool());
        }
    }
}
