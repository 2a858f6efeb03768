//! What was measured, by tool.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_core::{ByTool, Tool};

use super::quantile::Quantile;

/// The measures of all tools. Tools come and go rarely, so the map is read as a snapshot and replaced
/// whole.
#[derive(Debug)]
pub(crate) struct Measures {
    /// A keyed hash of replica set and name stands for the tool: two that met would share a measure, and
    /// at 64 bits do not.
    hasher: RandomState,
    by_tool: ArcSwap<HashMap<u64, Arc<Quantile>>>,
    /// The same for tools called lately. One that was forgotten meanwhile goes on with what it has.
    recent: ByTool<Arc<Quantile>>,
}

impl Measures {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            by_tool: ArcSwap::default(),
            recent: ByTool::new(),
        }
    }

    /// Returns the measure of a tool, made on first use.
    pub(crate) fn of(&self, tool: &Arc<Tool>) -> Arc<Quantile> {
        self.recent.with(tool, || self.look_up(tool), Arc::clone)
    }

    fn look_up(&self, tool: &Tool) -> Arc<Quantile> {
        let key = self
            .hasher
            .hash_one((tool.set().as_str(), tool.name().as_str()));
        if let Some(measure) = self.by_tool.load().get(&key) {
            return measure.clone();
        }
        let fresh = Arc::new(Quantile::new());
        self.by_tool.rcu(|map| {
            let mut map = HashMap::clone(map);
            if map.len() >= MOST_TOOLS && !map.contains_key(&key) {
                forget_least_used(&mut map);
            }
            map.entry(key).or_insert_with(|| fresh.clone());
            map
        });
        // somebody else may have been first: the measure in the map is the one that counts
        let map = self.by_tool.load();
        map.get(&key).unwrap_or(&fresh).clone()
    }
}

/// Makes place for one more. A server that lists ever new tools so replaces its own, not those that
/// others use.
fn forget_least_used(map: &mut HashMap<u64, Arc<Quantile>>) {
    let least = map.iter().min_by_key(|(_, measure)| measure.held());
    if let Some(key) = least.map(|(key, _)| *key) {
        map.remove(&key);
    }
}

/// At 1.7 KiB each, all of them take less than 2 MiB.
const MOST_TOOLS: usize = 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callward_testkit::tool;

    use super::*;

    #[test]
    fn ever_new_tools_do_not_displace_one_that_is_used() {
        let measures = Measures::new();
        let used = tool("used").build();
        measures.of(&used).observe(Duration::from_secs(1), 95, 1);
        for n in 0..MOST_TOOLS + 10 {
            measures.of(&tool(&format!("new_{n}")).build());
        }
        assert_eq!(measures.by_tool.load().len(), MOST_TOOLS);
        assert!(measures.of(&used).value().is_some());
    }

    #[test]
    fn tools_of_one_name_in_two_sets_are_two() {
        let measures = Measures::new();
        let in_set = |set| tool("read").set(set).build();
        measures
            .of(&in_set("a"))
            .observe(Duration::from_secs(1), 95, 1);
        assert!(measures.of(&in_set("a")).value().is_some());
        assert!(measures.of(&in_set("b")).value().is_none());
    }
}
