//! Whose turn it is, by counting.

use std::sync::atomic::AtomicU64;

/// The turn counters of one list of servers.
///
/// One counter for all calls that choose from the whole list, whatever tool they are for, so that any
/// number of successive calls is spread evenly. Those that choose from a part of it count apart: with
/// one counter for both, reads and destructive calls that alternate would send every destructive call
/// to the same server.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    whole: AtomicU64,
    part: AtomicU64,
}

impl Turns {
    pub(crate) fn counter(&self, is_whole: bool) -> &AtomicU64 {
        if is_whole { &self.whole } else { &self.part }
    }
}
