//! The state of the cache for each tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use callward_core::{CacheStatus, ReplicaSetId, Tool, ToolCall, ToolName};
use dashmap::DashMap;
use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::durations::Durations;
use crate::observed::SetObserver;
use crate::reason::{BypassReason, RefusalReason};
use crate::scope::{Scope, ScopeRules, StateAccess};
use crate::shared::Shared;
use crate::stats::{Counts, ToolStats};

/// The state of the cache for each tool: of each definition, its digest and scopes; of each name,
/// counters.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// By the tool's address: each version holds its tool, so no address is used twice.
    versions: DashMap<usize, Arc<Version>, RandomState>,
    records: DashMap<(ReplicaSetId, ToolName), Arc<Record>>,
    /// With this many versions, those that no caller holds are removed.
    max_versions: AtomicUsize,
    /// The sums of tools that were removed.
    removed: Mutex<Counts>,
    /// A record that is created again must not start with an epoch it had before.
    epochs: AtomicU64,
}

/// Fewer versions than this are never removed.
const MIN_VERSIONS: usize = 256;

/// One definition of a tool.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) tool: Arc<Tool>,
    pub(crate) digest: u128,
    pub(crate) access: StateAccess,
    pub(crate) record: Arc<Record>,
}

/// The counters of one tool, whatever its definition.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) set: ReplicaSetId,
    pub(crate) tool: ToolName,
    pub(crate) observer: Arc<SetObserver>,
    own: Arc<Scope>,
    counts: Mutex<Counts>,
    /// How long reads with a result take.
    pub(crate) reads: Durations,
    /// How long writes with a result take.
    pub(crate) writes: Durations,
    /// Whether a version was removed whose results may still be kept.
    lost: AtomicBool,
}

impl Tools {
    /// Returns the cache's state for a tool.
    pub(crate) fn version(&self, tool: &Arc<Tool>, shared: &Shared) -> Arc<Version> {
        let address = Arc::as_ptr(tool).addr();
        if let Some(version) = self.versions.get(&address) {
            return version.clone();
        }
        // the rules do not change while this is held
        let rules = shared.rules.read();
        if self.versions.len() >= self.max_versions.load(Ordering::Relaxed).max(MIN_VERSIONS) {
            self.remove_unheld();
        }
        let record = self.record(tool.set(), tool.name(), shared);
        let new = || Arc::new(Version::new(tool.clone(), record, shared, &rules));
        self.versions.entry(address).or_insert_with(new).clone()
    }

    /// Removes versions whose tools no caller holds, and records without versions: a server may
    /// list another definition whenever it is asked.
    pub(crate) fn remove_unheld(&self) {
        self.versions.retain(|_, version| {
            let held = Arc::strong_count(&version.tool) > 1;
            if !held {
                version.record.lost.store(true, Ordering::SeqCst);
            }
            held
        });
        // held throughout, so that a concurrent sum finds each record either here or there
        let mut removed = self.removed.lock();
        self.records.retain(|_, record| {
            let held = Arc::strong_count(record) > 1;
            if !held {
                *removed += *record.counts.lock();
            }
            held
        });
        drop(removed);
        let versions = self.versions.len();
        self.max_versions.store(2 * versions, Ordering::Relaxed);
    }

    /// Applies other rules, and forgets the results of the tools for which they differ: epochs of
    /// one list of scopes mean nothing in another.
    pub(crate) fn change_rules(&self, shared: &Shared, old: &ScopeRules, new: &ScopeRules) {
        let changed = |set: &ReplicaSetId, name: &ToolName| !old.agree_on(new, set, name);
        for mut version in self.versions.iter_mut() {
            let (tool, record) = (version.tool.clone(), version.record.clone());
            if changed(tool.set(), tool.name()) {
                *version = Arc::new(Version::new(tool, record, shared, new));
            }
        }
        for record in &self.records {
            if changed(&record.set, &record.tool) {
                record.own.raise();
            }
        }
    }

    fn record(&self, set: &ReplicaSetId, tool: &ToolName, shared: &Shared) -> Arc<Record> {
        let new = || {
            let epoch = self.epochs.fetch_add(1 << 32, Ordering::Relaxed);
            Arc::new(Record {
                set: set.clone(),
                tool: tool.clone(),
                observer: shared.evidence.observers.of(set),
                own: Arc::new(Scope::new(epoch)),
                counts: Mutex::default(),
                reads: Durations::default(),
                writes: Durations::default(),
                lost: AtomicBool::new(false),
            })
        };
        let name = (set.clone(), tool.clone());
        self.records.entry(name).or_insert_with(new).clone()
    }

    /// Invalidates the results of each tool for which `matches` returns `true`.
    pub(crate) fn raise(&self, matches: impl Fn(&Record) -> bool) {
        for record in self.records.iter().filter(|record| matches(record)) {
            record.own.raise();
        }
    }

    /// Invalidates the results of tools with this tag. A tool that was removed may have carried it,
    /// and may be defined again.
    pub(crate) fn raise_tagged(&self, tag: &str) {
        for version in &self.versions {
            let tags = &version.tool.resolved.annotations.tags;
            if tags.iter().flatten().any(|own| own == tag) {
                version.record.own.raise();
            }
        }
        self.raise(|record| record.lost.load(Ordering::SeqCst));
    }

    pub(crate) fn counts(&self) -> Counts {
        let removed = self.removed.lock();
        let mut all = *removed;
        for record in &self.records {
            all += *record.counts.lock();
        }
        drop(removed);
        all
    }

    pub(crate) fn stats(&self) -> Vec<ToolStats> {
        let stats = self.records.iter().map(|record| ToolStats {
            set: record.set.clone(),
            tool: record.tool.clone(),
            counts: *record.counts.lock(),
        });
        let mut stats: Vec<ToolStats> = stats.collect();
        stats.sort_by(|a, b| (&a.set, &a.tool).cmp(&(&b.set, &b.tool)));
        stats
    }
}

impl Version {
    fn new(tool: Arc<Tool>, record: Arc<Record>, shared: &Shared, rules: &ScopeRules) -> Self {
        let (set, name, own) = (tool.set(), tool.name(), record.own.clone());
        Self {
            digest: shared.keys.tool(&tool),
            access: StateAccess::new(&shared.scopes, rules, set, name, own),
            tool,
            record,
        }
    }
}

impl Record {
    /// Counts a result that is not kept.
    pub(crate) fn refuse(&self, reason: RefusalReason) {
        self.count(|counts| counts.refusals.add_one(reason));
    }

    /// Counts and records a call that is sent without a look-up.
    pub(crate) fn bypass(&self, call: &ToolCall, reason: BypassReason) {
        self.count(|counts| {
            counts.bypassed += 1;
            counts.bypasses.add_one(reason);
        });
        if let Some(record) = &call.record {
            record.with(|facts| {
                facts.cache = CacheStatus::Bypass;
                facts.cache_bypass = Some(reason.as_str());
            });
        }
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut self.counts.lock());
    }
}
