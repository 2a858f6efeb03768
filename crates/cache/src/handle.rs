//! Inspecting and purging a cache.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::{Principal, ReplicaSetId, ToolCall, ToolName};
use tokio::time::Instant;

use crate::evidence::{EvidenceStatus, wall};
use crate::observed::Observed;
use crate::preview::CachePreview;
use crate::reason::EvictionCause;
use crate::scope::ScopeRules;
use crate::shared::Shared;
use crate::stats::{CacheStats, ToolStats};
use crate::tools::Record;
use crate::unsettled::UnsettledState;

/// Inspects and purges a cache. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct CacheHandle {
    pub(crate) shared: Arc<Shared>,
}

impl CacheHandle {
    /// Returns counts and usage. Runs the store's pending tasks first: for dashboards, not for
    /// calls.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        // first the usage, which runs pending evictions
        let usage = self.shared.store.usage();
        let evictions = self.shared.store.evictions();
        CacheStats {
            counts: self.shared.tools.counts(),
            evicted: evictions.get(EvictionCause::Size),
            evictions,
            entries: usage.entries,
            bytes: usage.bytes,
        }
    }

    /// Returns the counts of each tool that was called, by replica set and name.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolStats> {
        self.shared.tools.stats()
    }

    /// Returns what the cache would do with a call now. Nothing is sent, and nothing is counted.
    #[must_use]
    pub fn preview(&self, call: &ToolCall) -> CachePreview {
        let version = self.shared.tools.version(call.tool(), &self.shared);
        CachePreview::of(&self.shared, &version, call)
    }

    /// Returns the evidence about a tool's answers: of the principal with the most, if there are
    /// several.
    #[must_use]
    pub fn evidence(&self, set: &ReplicaSetId, tool: &ToolName) -> Option<EvidenceStatus> {
        self.all_evidence().remove(&(set.clone(), tool.clone()))
    }

    /// Returns the evidence about each tool of which there is any, as [`evidence`](Self::evidence)
    /// does.
    #[must_use]
    pub fn all_evidence(&self) -> HashMap<(ReplicaSetId, ToolName), EvidenceStatus> {
        let mut all: HashMap<_, EvidenceStatus> = HashMap::new();
        for (set, tool, status) in self.evidence_by_partition() {
            let known = all.entry((set, tool)).or_insert_with(|| status.clone());
            if known.repeats < status.repeats {
                *known = status;
            }
        }
        all
    }

    /// Returns all evidence: of a tool once for each [partition](crate::Partition) that it is kept
    /// for.
    #[must_use]
    pub fn evidence_by_partition(&self) -> Vec<(ReplicaSetId, ToolName, EvidenceStatus)> {
        let all = self.shared.evidence.all().into_iter();
        all.map(|(subject, evidence)| (subject.set, subject.tool, evidence.status()))
            .collect()
    }

    /// Returns what tools were seen to do that their hints do not say.
    #[must_use]
    pub fn observations(&self) -> Vec<Observed> {
        self.shared.evidence.observers.all()
    }

    /// Calls this with each new [observation](Self::observations), from the task of a call. There
    /// is one listener: further ones are ignored.
    pub fn on_observation(&self, listener: impl Fn(Observed) + Send + Sync + 'static) {
        let observers = &self.shared.evidence.observers;
        observers.on_observation(Box::new(listener));
    }

    /// Writes the evidence to the [file](crate::CacheConfig::evidence_file) it was read from, if
    /// there is one and anything is new. Returns `true` if it wrote. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The old one stays.
    pub fn save_evidence(&self) -> std::io::Result<bool> {
        self.shared.evidence.save(wall(), Instant::now())
    }

    /// Replaces the rules for which state tools read and write; at first those are the config's
    /// [`scopes`](crate::CacheConfig::scopes). Results of tools whose rules changed are purged.
    pub fn set_scope_rules(&self, rules: ScopeRules) {
        let mut current = self.shared.rules.write();
        // as long as it is held, no version is made by the old rules
        let old = std::mem::replace(&mut *current, rules);
        self.shared.tools.change_rules(&self.shared, &old, &current);
    }

    /// Returns `true` if a write to state of the replica set is in flight, or has ended and may
    /// still land. Such a write counts by the rules of the time when it began.
    #[must_use]
    pub fn is_written(&self, set: &ReplicaSetId) -> bool {
        let group = self.shared.rules.read().group(set);
        self.shared.scopes.is_written(&group, Instant::now())
    }

    /// Returns the state that ended writes may still change, by name: none of it is served from the
    /// cache meanwhile.
    #[must_use]
    pub fn unsettled(&self) -> Vec<UnsettledState> {
        self.shared.unsettled.list(Instant::now())
    }

    /// Returns which state tools read and write.
    pub fn scope_rules(&self) -> ScopeRules {
        self.shared.rules.read().clone()
    }

    /// Removes its state of replica sets that are not kept, and of tools that no caller holds;
    /// their counts go into the sums. State that is still being written stays.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.shared.tools.remove_unheld();
        let rules = self.shared.rules.read().clone();
        let keep = |group: &_| rules.uses(group, &keep);
        self.shared.scopes.retain(keep, Instant::now());
    }

    /// Purges everything. The results of reads in flight are not kept either; the same holds for
    /// every other purge.
    pub fn purge_all(&self) {
        self.shared.scopes.raise_all();
        self.shared.executions.clear();
        self.shared.store.clear();
    }

    /// Purges the results of a replica set.
    pub fn purge_set(&self, set: &ReplicaSetId) {
        self.shared.tools.raise(|record| record.set == *set);
    }

    /// Purges the results of one tool.
    pub fn purge_tool(&self, set: &ReplicaSetId, tool: &ToolName) {
        let is_it = |record: &Record| record.set == *set && record.tool == *tool;
        self.shared.tools.raise(is_it);
    }

    /// Purges the results of all tools with a tag, and of scopes of that name.
    pub fn purge_tag(&self, tag: &str) {
        self.shared.scopes.raise_named(tag);
        self.shared.tools.raise_tagged(tag);
    }

    /// Purges this principal's results. Results that all principals share stay.
    pub fn purge_principal(&self, principal: &Principal) {
        let digest = self.shared.keys.principal(principal);
        self.shared.principals.raise(digest);
    }
}
