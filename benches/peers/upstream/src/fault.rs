//! What goes wrong after a tool has run: whether it did cannot be seen from the answer.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

/// How an answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It is not.
    #[default]
    None,
    /// The connection ends without a byte of it.
    Drop,
    /// It is HTTP status 503.
    Unavailable,
    /// It is the JSON-RPC error -32603.
    Rpc,
    /// It is a result with `isError`.
    Result,
}

/// What happens to the answers of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub fault: Fault,
    /// Which share of executions it happens to, from 0.0 to 1.0.
    #[serde(default = "all")]
    pub share: f64,
    /// Another seed, another choice of executions.
    #[serde(default)]
    pub seed: u64,
}

fn all() -> f64 {
    1.0
}

impl Rule {
    /// Whether the answer to the `nth` execution of a tool with this key is lost. The same in every
    /// run, and whatever the order of calls is.
    fn strikes(&self, tool: &str, key: &str, nth: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        (self.seed, tool, key, nth).hash(&mut hasher);
        let drawn = (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < self.share
    }
}

/// The rules, by tool.
#[derive(Debug, Default)]
pub struct Faults {
    active: AtomicBool,
    rules: Mutex<HashMap<String, Rule>>,
}

impl Faults {
    /// Whether there is any rule: without one, a call costs nothing here.
    pub fn any(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// From now on these are all rules there are.
    pub fn set(&self, rules: HashMap<String, Rule>) {
        let mut held = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        self.active.store(!rules.is_empty(), Ordering::Relaxed);
        *held = rules;
    }

    /// What happens to the answer to the `nth` execution of a tool with this key.
    pub fn decide(&self, tool: &str, key: &str, nth: u64) -> Fault {
        if !self.any() {
            return Fault::None;
        }
        let held = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get(tool) {
            Some(rule) if rule.strikes(tool, key, nth) => rule.fault,
            _ => Fault::None,
        }
    }
}

/// What the tool decided, for the connection that carries its answer.
#[derive(Debug, Clone, Default)]
pub struct Verdict(Arc<OnceLock<Fault>>);

impl Verdict {
    pub fn set(&self, fault: Fault) {
        // the first one stays
        let _ = self.0.set(fault);
    }

    pub fn get(&self) -> Fault {
        self.0.get().copied().unwrap_or_default()
    }
}

/// Ends a connection without an answer.
#[derive(Debug)]
pub struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dropped on purpose")
    }
}

impl std::error::Error for Dropped {}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(share: f64, seed: u64) -> Rule {
        Rule {
            fault: Fault::Drop,
            share,
            seed,
        }
    }

    fn struck(rule: &Rule) -> Vec<bool> {
        (0..10_000)
            .map(|key| rule.strikes("flaky_get", &format!("k{key}"), 1))
            .collect()
    }

    #[test]
    fn the_share_is_kept() {
        for (share, from, to) in [(0.0, 0, 0), (0.3, 2800, 3200), (1.0, 10_000, 10_000)] {
            let count = struck(&rule(share, 1)).iter().filter(|hit| **hit).count();
            assert!((from..=to).contains(&count), "{share}: {count}");
        }
    }

    #[test]
    fn a_seed_says_which() {
        assert_eq!(struck(&rule(0.3, 1)), struck(&rule(0.3, 1)));
        assert_ne!(struck(&rule(0.3, 1)), struck(&rule(0.3, 2)));
    }

    #[test]
    fn rules_are_for_their_tool() {
        let faults = Faults::default();
        assert!(!faults.any());
        faults.set(HashMap::from([("broken_get".to_owned(), rule(1.0, 0))]));
        assert_eq!(faults.decide("broken_get", "k", 1), Fault::Drop);
        assert_eq!(faults.decide("get_item", "k", 1), Fault::None);
        faults.set(HashMap::new());
        assert_eq!(faults.decide("broken_get", "k", 1), Fault::None);
    }
}
