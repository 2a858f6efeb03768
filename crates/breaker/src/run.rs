//! Failures in a row, and how many of them speak against more than one tool.
//!
//! Who cannot connect has found the server gone, whatever was to be called. A connection that is lost
//! after the call was sent has two readings: the server went away, or this one tool ends its
//! connections, as one that crashes its worker or runs into a proxy's limit does. The second must not
//! take the other tools with it. So of what is lost in a row each tool counts once, and one tool
//! alone, however often it is called, is the business of its own breaker.

use crate::mark::Mark;

/// Failures since the last success.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    failures: u32,
    /// Those that no tool can be the reason of.
    certain: u32,
    /// The tools that may be the reason of the others, each once. Empty, and so no memory, for as long
    /// as nothing fails.
    tools: Vec<Mark>,
}

impl Run {
    /// Counts a failure. `tool` is the one that may be all that is wrong, if there is one.
    pub(crate) fn count(&mut self, tool: Option<Mark>) {
        self.failures = self.failures.saturating_add(1);
        match tool {
            None => self.certain = self.certain.saturating_add(1),
            // no more of them than it takes to open the breaker, or than the server has where no run does
            Some(tool) if !self.tools.contains(&tool) => self.tools.push(tool),
            Some(_) => {}
        }
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

    fn run(of: &[Option<u64>]) -> Run {
        let mut run = Run::default();
        for tool in of {
            run.count(tool.map(Mark));
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
