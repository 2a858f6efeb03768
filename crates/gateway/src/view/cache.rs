//! What the cache did, and what it is to forget.

use std::collections::BTreeMap;

use callward::registry::Catalogue;
use callward::{ReplicaSetId, Stack, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::EvidenceView;

/// What the cache did since the gateway started, and what it keeps now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CacheView {
    /// By all tools together.
    pub(crate) total: TotalView,
    /// By each tool that was called, by replica set and name.
    pub(crate) tools: Vec<ToolCountsView>,
    /// State that writes which have ended may still change: nothing of it is served from the cache.
    #[serde(default)]
    pub(crate) unsettled: Vec<UnsettledView>,
}

/// State that a write which has ended may still change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UnsettledView {
    /// By its name in the rules, or as everything of a group.
    pub(crate) state: String,
    pub(crate) set: String,
    /// As its server calls it.
    pub(crate) tool: String,
    /// What became of the write that ended last.
    pub(crate) reason: String,
    pub(crate) age_ms: f64,
    pub(crate) left_ms: f64,
}

fn client_name(catalogue: &Catalogue, set: &ReplicaSetId, tool: &ToolName) -> Option<String> {
    let mut entries = catalogue.entries().iter();
    let offered = entries.find(|entry| entry.tool().set() == set && entry.tool().name() == tool);
    offered.map(|entry| entry.client_name().to_owned())
}

/// What all tools did together, and what is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TotalView {
    #[serde(flatten)]
    pub(crate) counts: CountsView,
    pub(crate) evicted: u64,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// What one tool did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolCountsView {
    /// The name clients call it by; absent for a tool that is not offered any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) set: String,
    /// As its server calls it.
    pub(crate) tool: String,
    /// What repeated calls showed; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<EvidenceView>,
    #[serde(flatten)]
    pub(crate) counts: CountsView,
}

/// How often what was done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CountsView {
    pub(crate) hits: u64,
    pub(crate) joined: u64,
    pub(crate) stale: u64,
    pub(crate) misses: u64,
    /// The share of look-ups that were answered without a server.
    #[serde(default)]
    pub(crate) hit_rate: Option<f64>,
    pub(crate) invalidations: u64,
    pub(crate) bypassed: u64,
    pub(crate) bypasses: BTreeMap<String, u64>,
    pub(crate) stored: u64,
    pub(crate) refusals: BTreeMap<String, u64>,
    pub(crate) saved_ms: f64,
    /// Whatever else the cache counts.
    #[serde(flatten)]
    pub(crate) more: BTreeMap<String, Value>,
}

impl CountsView {
    /// How many failures were answered with what was kept; gateways that do not count them, none.
    pub(crate) fn rescued(&self) -> u64 {
        self.more
            .get("rescued")
            .and_then(Value::as_u64)
            .unwrap_or(0)
    }
}

impl CacheView {
    /// Reads it off a stack. Does the store's pending housekeeping.
    ///
    /// # Errors
    ///
    /// None in practice: the names here are those the cache writes, and a test reads them.
    pub(crate) fn of(stack: &Stack) -> serde_json::Result<Self> {
        let catalogue = stack.catalogue();
        let stats = stack.cache_stats();
        let mut total: TotalView = read(&stats)?;
        total.counts.hit_rate = stats.counts.hit_rate();
        let tools = stack.cache().tools();
        let learned = stack.learned_lifetimes();
        let tools = tools.iter().map(|stats| {
            let mut view: ToolCountsView = read(stats)?;
            view.counts.hit_rate = stats.counts.hit_rate();
            view.name = client_name(&catalogue, &stats.set, &stats.tool);
            let seen = learned.get(&(stats.set.clone(), stats.tool.clone()));
            view.evidence = seen.and_then(EvidenceView::of);
            Ok(view)
        });
        Ok(Self {
            total,
            tools: tools.collect::<serde_json::Result<_>>()?,
            unsettled: read(&stack.cache().unsettled())?,
        })
    }
}

/// Takes what the cache writes of itself: what it counts is told without being listed here once more.
fn read<T: for<'de> Deserialize<'de>>(stats: &impl Serialize) -> serde_json::Result<T> {
    serde_json::from_value(serde_json::to_value(stats)?)
}

/// What the cache is to forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purge {
    /// All of it.
    All(bool),
    /// What is one principal's alone.
    Principal(String),
    /// What was read from the replica set of this server.
    Server(String),
    /// The results of tools with this tag, and what was read from scopes of this name.
    Tag(String),
    /// The results of this tool, by the name clients see.
    Tool(String),
}

impl Purge {
    /// What a request may name, for messages.
    pub(crate) const KEYS: &str = "`all`, `principal`, `server`, `tag`, `tool`";
}

/// What was forgotten.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Purged {
    pub(crate) purged: Purge,
    /// The replica set it belonged to, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<String>,
}

#[cfg(test)]
mod tests {
    use callward::cache::CacheStats;

    use super::*;

    #[test]
    fn what_the_cache_writes_is_what_is_read() {
        let view: TotalView = read(&CacheStats::default()).unwrap();
        assert_eq!(view.counts.bypasses["writing"], 0);
        assert_eq!(view.counts.refusals["too_large"], 0);
        let written = serde_json::to_value(&view).unwrap();
        assert_eq!(written["hits"], 0);
        assert_eq!(written["hit_rate"], Value::Null);
    }

    #[test]
    fn a_purge_names_exactly_one_thing() {
        let read = |text: &str| serde_json::from_str::<Purge>(text);
        assert_eq!(read(r#"{"all":true}"#).unwrap(), Purge::All(true));
        assert_eq!(read(r#"{"tag":"t"}"#).unwrap(), Purge::Tag("t".into()));
        for text in [
            "{}",
            "[]",
            r#""all""#,
            r#"{"all":1}"#,
            r#"{"tag":null}"#,
            r#"{"all":true,"tag":"t"}"#,
            r#"{"tag":"t","tag":"t"}"#,
            r#"{"toll":"t"}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
