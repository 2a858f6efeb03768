//! Failures in a row, and how many of them speak against more than one tool.
//!
//! Who cannot connect has found the server gone, whatever was to be called. A connection that is lost
//! after the call was sent has two readings: the server went away, or this one tool ends its
//! connections, as one that crashes its worker or runs into a proxy's limit does. The second must not
//! take the other tools with it. So of what is lost in a row each tool counts once, and one tool
//! alone, however often it is called, is the business of its own breaker.
//!
//! Nor are two failures two events where both calls were under way at the same time: a server that dies
//! takes all of them with it, and a tool that loses one reply in three loses several of what is called
//! by many, before any of them can know. In a row is what began after the one before was known, once all
//! that had been under way have ended, too: which of the calls of a moment ends first is chance, and a
//! success among the others ends the row. That costs little time where failures are quick, and for calls
//! that take long it is not waited for longer than [`PATIENCE`]. Where several call, calls that take
//! no time are served one by one, and hardly any are under way together: there what fails within one
//! [`MOMENT`] is one event, too, or else chance alone would soon make a row of calls by the thousand. Who
//! waited for a timeout, or could not even connect, has found out for himself, and counts whatever else
//! was under way.

use std::time::Duration;

use tokio::time::Instant;

use crate::mark::Mark;

/// What a failure may have in common with others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fault {
    /// The tool that may be all that is wrong, if there is one.
    pub(crate) tool: Option<Mark>,
    /// Whether what made it fail may have made all fail that were under way.
    pub(crate) is_shared: bool,
    /// Who called, if that is known.
    pub(crate) session: Option<Mark>,
}

/// Failures since the last success.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    failures: u32,
    /// Those that no tool can be the reason of.
    certain: u32,
    /// The tools that may be the reason of the others, each once. Empty, and so no memory, for as long
    /// as nothing fails.
    tools: Vec<Mark>,
    /// Those that counted, from the beginning. It may wrap: a call that saw it is compared with now.
    known: u16,
    /// When the last of them came to be known.
    since: Option<Instant>,
    /// The calls that were under way then, and still are.
    under_way: u32,
    /// Whose call failed last.
    session: Option<Mark>,
    /// When somebody else's call failed than the one before.
    passed_on: Option<Instant>,
}

/// For so long after a failure the calls that were under way with it are waited for, and for so long it is
/// remembered that several call.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// What several callers lose within this time is one event. None where a scheduler chooses the order of
/// steps: no order may depend on the clock.
const MOMENT: Duration = Duration::from_millis(if cfg!(shuttle) { 0 } else { 100 });

/// A call that has ended, as a run sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) fault: Fault,
    /// The failures that were [known](Run::known) when it began.
    pub(crate) known: u16,
    pub(crate) at: Instant,
    /// The calls that are under way beside it.
    pub(crate) others: u32,
    /// Whether any were under way beside each other, less than [`PATIENCE`] ago.
    pub(crate) overlapped: bool,
}

impl Run {
    /// Takes note that a call has ended, whatever came of it, that began when so many were known.
    pub(crate) fn end(&mut self, known: u16) {
        if known != self.known {
            self.under_way = self.under_way.saturating_sub(1);
        }
    }

    /// Counts a failure.
    pub(crate) fn count(&mut self, ended: Ended) {
        let fault = ended.fault;
        if self.is_anothers(fault) {
            self.passed_on = Some(ended.at);
        }
        self.session = fault.session.or(self.session);
        if fault.is_shared && self.failures > 0 && !self.is_followed_by(ended) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        match fault.tool {
            None => self.certain = self.certain.saturating_add(1),
            // no more of them than it takes to open the breaker, or than the server has where no run does
            Some(tool) if !self.tools.contains(&tool) => self.tools.push(tool),
            // of the server it says nothing new, and so hides no other tool's
            Some(_) => return,
        }
        self.known = self.known.wrapping_add(1);
        (self.since, self.under_way) = (Some(ended.at), ended.others);
    }

    /// Says whether a call began after the last failure that counts, whatever had begun before has
    /// ended, and where several call, so has the moment.
    fn is_followed_by(&self, ended: Ended) -> bool {
        let passed = |since: Option<Instant>, time| {
            since.is_none_or(|since| ended.at.saturating_duration_since(since) >= time)
        };
        let is_over = self.under_way == 0 || passed(self.since, PATIENCE);
        let are_several = ended.overlapped || !passed(self.passed_on, PATIENCE);
        let is_later = !are_several || passed(self.since, MOMENT);
        ended.known == self.known && is_over && is_later
    }

    /// Says whether somebody else called than he whose call failed before.
    fn is_anothers(&self, fault: Fault) -> bool {
        let both = self.session.zip(fault.session);
        both.is_some_and(|(before, now)| before != now)
    }

    /// Tells the failures that are known apart from those that will be.
    pub(crate) const fn known(&self) -> u16 {
        self.known
    }

    pub(crate) fn clear(&mut self) {
        (self.failures, self.certain) = (0, 0);
        self.tools.clear();
    }

    /// How many there are, whoever is the reason.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    /// Says whether there were failures, and one tool may be the reason of all.
    pub(crate) const fn is_one_tools(&self) -> bool {
        self.certain == 0 && self.tools.len() == 1
    }

    /// Says whether so many speak against the server, each tool's counted once; never where one tool
    /// may be the reason of all, and never if the limit is 0.
    pub(crate) fn reaches(&self, limit: u32) -> bool {
        let tools = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
        limit > 0 && self.certain.saturating_add(tools) >= limit && !self.is_one_tools()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn fault(tool: Option<u64>) -> Fault {
        Fault {
            tool: tool.map(Mark),
            is_shared: true,
            session: None,
        }
    }

    /// Ends a call with a failure that began when so many were known, while so many are under way.
    fn fail(run: &mut Run, fault: Fault, known: u16, others: u32) {
        run.end(known);
        run.count(Ended {
            fault,
            known,
            at: Instant::now(),
            others,
            overlapped: false,
        });
    }

    /// Each began after the one before was known.
    fn run(of: &[Option<u64>]) -> Run {
        let mut run = Run::default();
        for tool in of {
            let known = run.known();
            fail(&mut run, fault(*tool), known, 0);
        }
        run
    }

    #[test]
    fn each_tool_counts_once_and_one_alone_never_is_enough() {
        let (a, b, c, sure) = (Some(1), Some(2), Some(3), None);
        let cases: &[(&[Option<u64>], u32, bool)] = &[
            (&[], 1, false),
            (&[sure], 1, true),
            (&[sure, sure], 3, false),
            (&[sure, sure, sure], 3, true),
            (&[sure, sure, sure], 0, false),
            (&[a], 1, false),
            (&[a, a, a, a, a], 3, false),
            (&[a, a, b], 3, false),
            (&[a, b], 1, true),
            (&[a, b, a, b], 3, false),
            (&[a, b, a, c], 3, true),
            (&[a, a, a, sure], 2, true),
            (&[a, a, a, sure], 3, false),
        ];
        for (of, limit, expected) in cases {
            assert_eq!(run(of).reaches(*limit), *expected, "{of:?}, {limit}");
        }
    }

    #[test]
    fn what_was_under_way_at_the_same_time_counts_once() {
        let mut run = Run::default();
        let before = run.known();
        for others in (0..8).rev() {
            fail(&mut run, fault(None), before, others);
        }
        assert_eq!(run.failures(), 1);
        let between = run.known();
        fail(&mut run, fault(None), between, 1);
        fail(&mut run, fault(None), before, 0);
        assert_eq!(run.failures(), 2);
        // the first counts, whenever it began
        run.clear();
        fail(&mut run, fault(None), before, 1);
        fail(&mut run, fault(None), between, 0);
        assert_eq!(run.failures(), 1);
        // what a call found out for itself counts each time
        for _ in 0..2 {
            fail(&mut run, Fault::default(), before, 0);
        }
        assert!(run.reaches(3));
    }

    /// One caller may be served again and again while others wait: what comes of them is not known yet.
    #[tokio::test(start_paused = true)]
    async fn a_row_goes_on_when_all_that_was_under_way_has_ended_or_takes_long() {
        let mut run = Run::default();
        let first = run.known();
        fail(&mut run, fault(None), first, 2);
        let second = run.known();
        fail(&mut run, fault(None), second, 2);
        run.end(first);
        fail(&mut run, fault(None), second, 1);
        assert_eq!(run.failures(), 1, "one of two is under way");
        run.end(first);
        fail(&mut run, fault(None), second, 2);
        assert_eq!(run.failures(), 2);
        let third = run.known();
        for (wait, failures) in [(999, 2), (1, 3)] {
            tokio::time::advance(Duration::from_millis(wait)).await;
            fail(&mut run, fault(None), third, 2);
            assert_eq!(run.failures(), failures);
        }
    }

    /// Calls that take no time are hardly ever under way together, whoever makes them.
    #[tokio::test(start_paused = true)]
    async fn what_several_lose_within_a_moment_counts_once() {
        let mut run = Run::default();
        let lose = |run: &mut Run, session, overlapped| {
            run.count(Ended {
                fault: Fault {
                    session,
                    ..fault(None)
                },
                known: run.known(),
                at: Instant::now(),
                others: 0,
                overlapped,
            });
            run.failures()
        };
        assert_eq!(lose(&mut run, None, true), 1);
        for (wait, failures) in [(0, 1), (99, 1), (1, 2), (99, 2), (1, 3)] {
            tokio::time::advance(Duration::from_millis(wait)).await;
            assert_eq!(lose(&mut run, None, true), failures, "{wait}");
        }
        assert_eq!(lose(&mut run, None, false), 4, "alone");
        // one by one, and yet several, of whom an answer says nothing
        run.clear();
        let mut of = |session| lose(&mut run, Some(Mark(session)), false);
        assert_eq!([1, 1, 2, 2, 1].map(&mut of), [1, 2, 2, 2, 2]);
        run.clear();
        let mut of = |session| lose(&mut run, Some(Mark(session)), false);
        assert_eq!([1, 1].map(&mut of), [1, 1]);
        tokio::time::advance(PATIENCE).await;
        assert_eq!([1, 1].map(of), [2, 3]);
    }

    #[test]
    fn a_tool_that_always_fails_hides_no_other() {
        let mut run = Run::default();
        for round in 1..=3 {
            let known = run.known();
            fail(&mut run, fault(Some(1)), known, 1);
            fail(&mut run, fault(Some(2)), known, 0);
            assert_eq!(run.is_one_tools(), round == 1, "{round}");
        }
        assert!(run.reaches(2));
    }

    proptest! {
        #[test]
        fn it_counts_like_a_set(
            of in prop::collection::vec(prop::option::of(0_u64..6), 0..40),
            limit in 0_u32..8,
        ) {
            let found = run(&of);
            let certain = of.iter().filter(|tool| tool.is_none()).count();
            let tools: HashSet<_> = of.iter().flatten().collect();
            prop_assert_eq!(found.failures() as usize, of.len());
            let alone = certain == 0 && tools.len() == 1;
            prop_assert_eq!(found.is_one_tools(), alone);
            let enough = certain + tools.len() >= limit as usize;
            prop_assert_eq!(found.reaches(limit), limit > 0 && enough && !alone);
            let mut cleared = found;
            cleared.clear();
            prop_assert!(cleared.failures() == 0 && !cleared.is_one_tools());
        }
    }
}
