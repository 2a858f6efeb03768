//! Series of instruments, found by tool and outcome.

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use callward_core::Tool;
use dashmap::DashMap;
use foldhash::fast::RandomState;

/// The series of each tool and outcome `K`.
///
/// Building the attributes of a series and having the SDK look it up costs more than recording a
/// value, so both are done once.
pub(super) struct ByTool<K, S> {
    /// By the tool's address. Each entry holds the tool's memory, so no address is used twice.
    series: DashMap<(usize, K), (Weak<Tool>, S), RandomState>,
    /// With this many series, those of tools that are gone are removed.
    max: AtomicUsize,
}

/// Fewer series than this are never removed.
const MIN: usize = 1024;

impl<K: Hash + Eq, S> ByTool<K, S> {
    pub(super) fn new() -> Self {
        Self {
            series: DashMap::default(),
            max: AtomicUsize::new(MIN),
        }
    }

    /// Passes a series to `record`; makes it if there is none.
    pub(super) fn with(
        &self,
        tool: &Arc<Tool>,
        outcome: K,
        new: impl FnOnce() -> S,
        record: impl FnOnce(&S),
    ) {
        let key = (Arc::as_ptr(tool).addr(), outcome);
        if let Some(series) = self.series.get(&key) {
            return record(&series.1);
        }
        if self.series.len() >= self.max.load(Ordering::Relaxed) {
            self.series.retain(|_, (tool, _)| tool.strong_count() > 0);
            let max = MIN.max(2 * self.series.len());
            self.max.store(max, Ordering::Relaxed);
        }
        let new = || (Arc::downgrade(tool), new());
        record(&self.series.entry(key).or_insert_with(new).1);
    }
}

impl<K, S> fmt::Debug for ByTool<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByTool").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::tool;

    use super::*;

    #[test]
    fn the_series_of_tools_that_are_gone_are_removed() {
        let series = ByTool::new();
        let kept = tool("kept").build();
        let made = AtomicUsize::new(0);
        let count = |tool: &Arc<Tool>| {
            let new = || made.fetch_add(1, Ordering::Relaxed);
            series.with(tool, (), new, |_| {});
        };
        count(&kept);
        for _ in 0..3 * MIN {
            count(&tool("gone").build());
            assert!(series.series.len() <= MIN);
        }
        count(&kept);
        assert_eq!(made.into_inner(), 1 + 3 * MIN, "the series of `kept` stays");
    }
}
