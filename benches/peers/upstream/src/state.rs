//! What the tools work on, and how often each has run.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::fault::Faults;

/// Everything there is. The tool that does nothing has a counter of its own and takes no lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) faults: Faults,
    noops: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    runs: HashMap<&'static str, BTreeMap<String, u64>>,
    items: BTreeMap<String, String>,
}

/// What ran, and what has become of the items.
#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    /// Executions of each tool.
    total: BTreeMap<&'static str, u64>,
    /// And of each key with it, except for `noop_get`.
    by_key: BTreeMap<&'static str, BTreeMap<String, u64>>,
    items: BTreeMap<String, String>,
}

impl State {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn noop(&self) {
        self.noops.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an execution, and says which one of this tool and key it is, from one.
    pub(crate) fn ran(&self, tool: &'static str, key: &str) -> u64 {
        let mut inner = self.inner();
        let runs = inner.runs.entry(tool).or_default();
        let count = runs.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn get(&self, key: &str) -> Option<String> {
        self.inner().items.get(key).cloned()
    }

    pub(crate) fn set(&self, key: &str, value: &str) {
        self.inner().items.insert(key.to_owned(), value.to_owned());
    }

    pub(crate) fn append(&self, key: &str, value: &str) {
        let mut inner = self.inner();
        inner
            .items
            .entry(key.to_owned())
            .or_default()
            .push_str(value);
    }

    pub(crate) fn delete(&self, key: &str) {
        self.inner().items.remove(key);
    }

    pub(crate) fn reset(&self) {
        self.faults.set(HashMap::new());
        self.noops.store(0, Ordering::Relaxed);
        *self.inner() = Inner::default();
    }

    pub(crate) fn counts(&self) -> Counts {
        let inner = self.inner();
        let by_key: BTreeMap<_, _> = inner
            .runs
            .iter()
            .map(|(tool, runs)| (*tool, runs.clone()))
            .collect();
        let mut total: BTreeMap<_, _> = by_key
            .iter()
            .map(|(tool, runs)| (*tool, runs.values().sum()))
            .collect();
        total.insert("noop_get", self.noops.load(Ordering::Relaxed));
        Counts {
            total,
            by_key,
            items: inner.items.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_execution_counts_until_a_reset() {
        let state = State::default();
        state.noop();
        assert_eq!(state.ran("get_item", "a"), 1);
        assert_eq!(state.ran("get_item", "a"), 2);
        assert_eq!(state.ran("get_item", "b"), 1);
        let counts = state.counts();
        assert_eq!(counts.total["noop_get"], 1);
        assert_eq!(counts.total["get_item"], 3);
        assert_eq!(counts.by_key["get_item"]["a"], 2);
        state.reset();
        assert_eq!(state.counts().total, BTreeMap::from([("noop_get", 0)]));
    }

    #[test]
    fn items_are_what_was_written() {
        let state = State::default();
        state.set("k", "a");
        state.append("k", "b");
        assert_eq!(state.get("k").as_deref(), Some("ab"));
        state.delete("k");
        assert_eq!(state.get("k"), None);
    }
}
