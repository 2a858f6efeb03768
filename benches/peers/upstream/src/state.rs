//! What the tools work on, and how often each has run.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::fault::{Fault, Faults};
use crate::tools::Work;

/// Everything there is. The tool that does nothing has a counter of its own and takes no lock.
#[derive(Debug, Default)]
pub struct State {
    pub faults: Faults,
    noops: AtomicU64,
    /// When the level was first asked for.
    began: OnceLock<Instant>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    runs: HashMap<&'static str, BTreeMap<String, u64>>,
    items: BTreeMap<String, String>,
}

/// What ran, and what has become of the items.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Executions of each tool.
    pub total: BTreeMap<String, u64>,
    /// And of each key with it, except for `noop_get`.
    pub by_key: BTreeMap<String, BTreeMap<String, u64>>,
    pub items: BTreeMap<String, String>,
    /// What `level_get` answers now.
    pub level: u64,
}

impl Counts {
    /// How often a tool ran with a key.
    #[must_use]
    pub fn of(&self, tool: &str, key: &str) -> u64 {
        let runs = self.by_key.get(tool).and_then(|keys| keys.get(key));
        runs.copied().unwrap_or_default()
    }

    /// How often a tool ran, whatever the key.
    #[must_use]
    pub fn all(&self, tool: &str) -> u64 {
        self.total.get(tool).copied().unwrap_or_default()
    }
}

impl State {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a tool, and says what it answers and what becomes of the answer. A slow tool is as
    /// quick here as any: anyone who calls this waits.
    pub fn run(&self, tool: &'static str, work: Work, key: &str, value: &str) -> (String, Fault) {
        if work == Work::Noop {
            self.noops.fetch_add(1, Ordering::Relaxed);
            return ("x".repeat(200), self.faults.decide(tool, key, 0));
        }
        let mut inner = self.inner();
        let runs = inner.runs.entry(tool).or_default();
        let count = runs.entry(key.to_owned()).or_default();
        *count += 1;
        let nth = *count;
        let answer = match work {
            Work::Level => self.level().to_string(),
            Work::Count => nth.to_string(),
            _ => inner.work(work, key, value),
        };
        drop(inner);
        (answer, self.faults.decide(tool, key, nth))
    }

    /// Seconds since it was first asked for.
    fn level(&self) -> u64 {
        self.began.get_or_init(Instant::now).elapsed().as_secs()
    }

    /// Gives items new values, without any tool.
    pub fn change(&self, items: BTreeMap<String, String>) {
        self.inner().items.extend(items);
    }

    pub fn reset(&self) {
        self.faults.set(HashMap::new());
        self.noops.store(0, Ordering::Relaxed);
        *self.inner() = Inner::default();
    }

    pub fn counts(&self) -> Counts {
        let inner = self.inner();
        let by_key: BTreeMap<_, _> = inner
            .runs
            .iter()
            .map(|(tool, runs)| ((*tool).to_owned(), runs.clone()))
            .collect();
        let mut total: BTreeMap<_, _> = by_key
            .iter()
            .map(|(tool, runs)| (tool.clone(), runs.values().sum()))
            .collect();
        total.insert("noop_get".to_owned(), self.noops.load(Ordering::Relaxed));
        Counts {
            total,
            by_key,
            items: inner.items.clone(),
            level: self.level(),
        }
    }
}

impl Inner {
    fn work(&mut self, work: Work, key: &str, value: &str) -> String {
        match work {
            Work::Noop | Work::Get | Work::Slow | Work::Level | Work::Count => {
                let found = self.items.get(key).cloned();
                found.unwrap_or_else(|| "nothing".to_owned())
            }
            Work::Append => {
                self.items
                    .entry(key.to_owned())
                    .or_default()
                    .push_str(value);
                "appended".to_owned()
            }
            Work::Set => {
                self.items.insert(key.to_owned(), value.to_owned());
                "set".to_owned()
            }
            Work::Delete => {
                self.items.remove(key);
                "deleted".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_execution_counts_until_a_reset() {
        let state = State::default();
        let (answer, fault) = state.run("noop_get", Work::Noop, "", "");
        assert_eq!((answer.len(), fault), (200, Fault::None));
        for key in ["a", "a", "b"] {
            state.run("get_item", Work::Get, key, "");
        }
        let counts = state.counts();
        assert_eq!((counts.all("noop_get"), counts.all("get_item")), (1, 3));
        assert_eq!(
            (counts.of("get_item", "a"), counts.of("get_item", "c")),
            (2, 0)
        );
        state.reset();
        assert_eq!(state.counts().all("get_item"), 0);
        assert_eq!(state.counts().all("noop_get"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_level_grows_by_one_each_second() {
        let state = State::default();
        let level = || state.run("level_get", Work::Level, "k", "").0;
        assert_eq!(level(), "0");
        tokio::time::advance(std::time::Duration::from_millis(3_500)).await;
        assert_eq!((level().as_str(), state.counts().level), ("3", 3));
    }

    #[test]
    fn each_key_of_a_counting_tool_counts_for_itself() {
        let state = State::default();
        let count = |key| state.run("count_calls", Work::Count, key, "").0;
        assert_eq!([count("a"), count("a"), count("b")], ["1", "2", "1"]);
    }

    #[test]
    fn items_are_what_was_written() {
        let state = State::default();
        let run = |tool, work, value| state.run(tool, work, "k", value).0;
        run("set_item", Work::Set, "a");
        run("append_item", Work::Append, "b");
        assert_eq!(run("get_item", Work::Get, ""), "ab");
        run("delete_item", Work::Delete, "");
        assert_eq!(run("get_item", Work::Get, ""), "nothing");
        state.change(BTreeMap::from([("k".to_owned(), "c".to_owned())]));
        assert_eq!(run("get_item", Work::Get, ""), "c");
    }
}
