//! Looking into a cache, and emptying it.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::{Principal, ReplicaSetId, ToolCall, ToolName};
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;

use crate::event::CacheEvent;
use crate::evidence::EvidenceStatus;
use crate::foresee::Foresight;
use crate::scope::ScopeRules;
use crate::shared::Shared;
use crate::stats::{CacheStats, ToolStats};
use crate::tools::Version;
use crate::unsettled::UnsettledState;

/// Looks into a cache and empties it. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct CacheHandle {
    shared: Arc<Shared>,
}

impl CacheHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns what the cache did and what it keeps. Does the store's pending housekeeping first:
    /// meant for dashboards, not for every call.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        // first the store, which may drop entries when it is asked
        let usage = self.shared.store.usage();
        let evictions = self.shared.evictions.snapshot();
        CacheStats::new(self.shared.tools.counts(), evictions, usage)
    }

    /// Returns what the cache did for each tool that was called, by replica set and name.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolStats> {
        self.shared.tools.stats()
    }

    /// Says what would become of a call that came now: whether its answer is kept, and what a write
    /// would drop. Nothing is sent, and nothing is counted.
    #[must_use]
    pub fn foresee(&self, call: &ToolCall) -> Foresight {
        let shared = &self.shared;
        let foresee = |version: &Arc<Version>| Foresight::of(shared, version, call);
        shared.tools.with(call.tool(), shared, foresee)
    }

    /// Returns what happens from now on, as it happens. A listener that falls 1,024 events behind
    /// loses the oldest and is told how many; no call waits for one.
    #[must_use]
    pub fn events(&self) -> Receiver<CacheEvent> {
        self.shared.events.listen()
    }

    /// Returns the evidence about a tool's answers: of the principal with the most, if there are several.
    #[must_use]
    pub fn evidence(&self, set: &ReplicaSetId, tool: &ToolName) -> Option<EvidenceStatus> {
        self.all_evidence().remove(&(set.clone(), tool.clone()))
    }

    /// Returns the evidence about each tool of which there is any, as [`evidence`](Self::evidence) does.
    #[must_use]
    pub fn all_evidence(&self) -> HashMap<(ReplicaSetId, ToolName), EvidenceStatus> {
        let mut all: HashMap<_, EvidenceStatus> = HashMap::new();
        for (set, tool, status) in self.evidence_by_partition() {
            let name = (set, tool);
            if all
                .get(&name)
                .is_none_or(|known| known.repeats < status.repeats)
            {
                all.insert(name, status);
            }
        }
        all
    }

    /// Returns all evidence: of a tool once for each [partition](crate::Partition) that it is kept for.
    #[must_use]
    pub fn evidence_by_partition(&self) -> Vec<(ReplicaSetId, ToolName, EvidenceStatus)> {
        let all = self.shared.evidence.all().into_iter();
        all.map(|(subject, evidence)| (subject.set, subject.tool, evidence.status()))
            .collect()
    }

    /// Writes the evidence to the [file](crate::CacheConfig::evidence_file) it was read from, if there is
    /// one and anything is new. Returns `true` if it wrote. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The old one stays.
    pub fn save_evidence(&self) -> std::io::Result<bool> {
        self.shared.evidence.save()
    }

    /// Says which state tools read and write, in place of what was said before; first of all that was
    /// the config's [`scopes`](crate::CacheConfig::scopes). Results of tools of which something else is
    /// said now are forgotten.
    pub fn set_scope_rules(&self, rules: ScopeRules) {
        let mut said = self.shared.rules.write();
        // as long as it is held, nobody finds out about a tool by the rules of before
        let old = std::mem::replace(&mut *said, rules);
        self.shared.tools.change_rules(&self.shared, &old, &said);
    }

    /// Returns `true` if a write to state of the replica set is in flight, or is unsettled: it has ended, and
    /// may well land still. Such a write touches what was said when it began.
    #[must_use]
    pub fn is_written(&self, set: &ReplicaSetId) -> bool {
        let group = self.shared.rules.read().group(set);
        self.shared.scopes.is_written(&group, Instant::now())
    }

    /// Returns which state writes that have ended may still change, by its name: nothing of it is served
    /// from the cache meanwhile.
    #[must_use]
    pub fn unsettled(&self) -> Vec<UnsettledState> {
        self.shared.unsettled.list(Instant::now())
    }

    /// Returns which state tools read and write.
    #[must_use]
    pub fn scope_rules(&self) -> ScopeRules {
        self.shared.rules.read().clone()
    }

    /// Forgets what it knows of replica sets that are not kept, and of tools that nobody holds any
    /// more: what was counted for them goes into the sums. Nothing that is still written is forgotten.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.shared.tools.drop_unheld();
        let rules = self.shared.rules.read().clone();
        let keep = |group: &_| rules.uses(group, &keep);
        self.shared.scopes.retain(keep, Instant::now());
    }

    /// Forgets everything. What running reads bring back is not kept either; the same holds for
    /// every other purge.
    pub fn purge_all(&self) {
        self.shared.scopes.raise_all();
        self.shared.executions.clear();
        self.shared.store.clear();
    }

    /// Forgets everything that was read from a replica set.
    pub fn purge_set(&self, set: &ReplicaSetId) {
        self.shared.tools.raise_set(set);
    }

    /// Forgets every result of one tool.
    pub fn purge_tool(&self, set: &ReplicaSetId, tool: &ToolName) {
        self.shared.tools.raise(set, tool);
    }

    /// Forgets the results of all tools that carry a tag, and what was read from scopes of that
    /// name.
    pub fn purge_tag(&self, tag: &str) {
        self.shared.scopes.raise_named(tag);
        self.shared.tools.raise_tagged(tag);
    }

    /// Forgets what is this principal's alone. Results that are shared with everybody stay.
    pub fn purge_principal(&self, principal: &Principal) {
        let digest = self.shared.keys.principal(principal);
        self.shared.principals.raise(digest);
    }
}
