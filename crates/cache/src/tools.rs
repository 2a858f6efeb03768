//! What the cache knows of each tool.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callward_core::{ReplicaSetId, Tool, ToolName};
use dashmap::DashMap;
use parking_lot::Mutex;

use crate::durations::Durations;
use crate::evidence::ToolEvidence;
use crate::key::{Role, ToolWord};
use crate::scope::{Footprint, Scope, ScopeRules};
use crate::shared::Shared;
use crate::stats::{Counters, Counts, ToolStats};
use crate::store::Account;

/// What the cache knows of each tool: of each version that calls bring along, what its keys and
/// scopes are; of each name, what was counted.
#[derive(Debug)]
pub(crate) struct Tools {
    /// Which cache this is, of all in the process.
    cache: u64,
    /// By address: each tool is held, so no address is used twice while it is here.
    versions: DashMap<usize, Held, BuildHasherDefault<Address>>,
    records: DashMap<(ReplicaSetId, ToolName), Arc<Record>>,
    /// How many versions there may be before those are dropped that nobody else holds.
    enough: AtomicUsize,
    /// What was counted for tools that are gone.
    gone: Mutex<Counts>,
    /// A record that is made anew after it was dropped must not begin with an epoch it had before.
    epochs: AtomicU64,
}

/// Hashes an address, which nobody outside chooses: spreads it over the high bits.
#[derive(Debug, Default)]
struct Address(u64);

impl Hasher for Address {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

impl Default for Tools {
    fn default() -> Self {
        static CACHES: AtomicU64 = AtomicU64::new(0);
        Self {
            cache: CACHES.fetch_add(1, Ordering::Relaxed),
            versions: DashMap::default(),
            records: DashMap::default(),
            enough: AtomicUsize::new(0),
            gone: Mutex::default(),
            epochs: AtomicU64::new(0),
        }
    }
}

/// Fewer versions than this are not worth a look.
const FEW: usize = 256;

/// One definition of a tool, in the table.
#[derive(Debug)]
struct Held {
    tool: Arc<Tool>,
    version: Arc<Version>,
}

/// What the first cache that a tool is called through keeps with it, so that a hit need not ask the table.
struct Kept {
    cache: u64,
    version: Arc<Version>,
}

/// One definition of a tool. It does not hold the tool, which may keep it.
#[derive(Debug)]
pub(crate) struct Version {
    reads: ToolWord,
    writes: ToolWord,
    pub(crate) footprint: Footprint,
    pub(crate) record: Arc<Record>,
    /// The evidence of the partition that was asked for last.
    pub(crate) evidence: Mutex<Option<(u128, Arc<ToolEvidence>)>>,
    /// What came in its place in the table, once something did; `None` if nothing did.
    next: OnceLock<Option<Arc<Self>>>,
}

/// What is counted for one tool, whatever its definition.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) set: ReplicaSetId,
    pub(crate) tool: ToolName,
    pub(crate) own: Arc<Scope>,
    pub(crate) counters: Counters,
    pub(crate) account: Arc<Account>,
    /// How long its reads take that have a result.
    pub(crate) reads: Durations,
    /// How long its writes take that have a result.
    pub(crate) writes: Durations,
    /// Nanoseconds, 0 for never.
    mean_duration: AtomicU64,
    /// Whether a version was dropped whose results may still be kept.
    lost: AtomicBool,
}

impl Tools {
    /// Does something with what is known of a tool.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        tool: &Arc<Tool>,
        shared: &Shared,
        act: impl FnOnce(&Arc<Version>) -> R,
    ) -> R {
        let kept = tool.kept().filter(|kept: &&Kept| kept.cache == self.cache);
        let found;
        let version = match kept.and_then(|kept| kept.version.latest()) {
            Some(version) => version,
            None => {
                found = self.find(tool, shared);
                &found
            }
        };
        act(version)
    }

    /// Returns what the table knows of a tool, finding it out if it is new.
    #[cold]
    fn find(&self, tool: &Arc<Tool>, shared: &Shared) -> Arc<Version> {
        // as long as it is held, nobody says otherwise which state tools touch
        let rules = shared.rules.read();
        let address = Arc::as_ptr(tool).addr();
        if let Some(held) = self.versions.get(&address) {
            return held.version.clone();
        }
        self.make_room();
        let record = self.record(tool.set(), tool.name());
        let new = || {
            let version = Arc::new(Version {
                reads: shared.keys.tool(tool, Role::Read),
                writes: shared.keys.tool(tool, Role::Write),
                footprint: record.footprint(shared, &rules),
                record: record.clone(),
                evidence: Mutex::default(),
                next: OnceLock::new(),
            });
            // another cache may have been first: then the table is asked each time
            tool.keep(Kept {
                cache: self.cache,
                version: version.clone(),
            });
            Held {
                tool: tool.clone(),
                version,
            }
        };
        let held = self.versions.entry(address).or_insert_with(new);
        held.version.clone()
    }

    /// Drops versions that only this table still holds, once there are twice as many as were kept
    /// last time: a server may list another definition whenever it is asked.
    fn make_room(&self) {
        if self.versions.len() < self.enough.load(Ordering::Relaxed).max(FEW) {
            return;
        }
        self.drop_unheld();
    }

    /// Drops versions that only this table still holds, and what was counted for tools without any.
    pub(crate) fn drop_unheld(&self) {
        self.versions.retain(|_, Held { tool, version }| {
            let held = Arc::strong_count(tool) > 1;
            if !held {
                version.record.lost.store(true, Ordering::SeqCst);
                version.end(None);
            }
            held
        });
        // held throughout: whoever counts meanwhile finds each record here or there, and not in both
        let mut gone = self.gone.lock();
        self.records.retain(|_, record| {
            let held = Arc::strong_count(record) > 1;
            if !held {
                *gone += record.counters.snapshot();
            }
            held
        });
        drop(gone);
        self.enough
            .store(2 * self.versions.len(), Ordering::Relaxed);
    }

    /// Reads again which state those tools touch of which other rules say something else, and forgets
    /// their results: epochs of one list of scopes mean nothing in another.
    pub(crate) fn change_rules(&self, shared: &Shared, old: &ScopeRules, new: &ScopeRules) {
        let changed = |set: &ReplicaSetId, name: &ToolName| !old.agree_on(new, set, name);
        let is_changed = |held: &Held| changed(held.tool.set(), held.tool.name());
        for mut held in self.versions.iter_mut().filter(|held| is_changed(held)) {
            let next = Arc::new(held.version.under(shared, new));
            held.version.end(Some(next.clone()));
            held.version = next;
        }
        for record in &self.records {
            if changed(&record.set, &record.tool) {
                record.own.raise();
            }
        }
    }

    fn record(&self, set: &ReplicaSetId, tool: &ToolName) -> Arc<Record> {
        let new = || {
            let epoch = self.epochs.fetch_add(1 << 32, Ordering::Relaxed);
            Arc::new(Record {
                set: set.clone(),
                tool: tool.clone(),
                own: Arc::new(Scope::new(epoch)),
                counters: Counters::default(),
                account: Arc::new(Account::of_tool(set.clone(), tool.clone())),
                writes: Durations::default(),
                reads: Durations::default(),
                mean_duration: AtomicU64::new(0),
                lost: AtomicBool::new(false),
            })
        };
        self.records
            .entry((set.clone(), tool.clone()))
            .or_insert_with(new)
            .clone()
    }

    /// Makes everything one tool answered unreachable.
    pub(crate) fn raise(&self, set: &ReplicaSetId, tool: &ToolName) {
        if let Some(record) = self.records.get(&(set.clone(), tool.clone())) {
            record.own.raise();
        }
    }

    /// Makes everything unreachable that tools of one replica set answered.
    pub(crate) fn raise_set(&self, set: &ReplicaSetId) {
        for record in self.records.iter().filter(|record| record.set == *set) {
            record.own.raise();
        }
    }

    /// Makes everything unreachable that tools with this tag answered.
    pub(crate) fn raise_tagged(&self, tag: &str) {
        for held in &self.versions {
            if held.tool.has_tag(tag) {
                held.version.record.own.raise();
            }
        }
        // one that is not here any more may have carried the tag, and may be defined again
        for record in &self.records {
            if record.lost.load(Ordering::SeqCst) {
                record.own.raise();
            }
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let gone = self.gone.lock();
        let mut all = *gone;
        for record in &self.records {
            all += record.counters.snapshot();
        }
        drop(gone);
        all
    }

    pub(crate) fn stats(&self) -> Vec<ToolStats> {
        let mut stats: Vec<ToolStats> = self.records.iter().map(|of| of.stats()).collect();
        stats.sort_by(|a, b| (&a.set, &a.tool).cmp(&(&b.set, &b.tool)));
        stats
    }
}

impl Version {
    /// Returns the same version under other rules.
    fn under(&self, shared: &Shared, rules: &ScopeRules) -> Self {
        Self {
            reads: self.reads,
            writes: self.writes,
            footprint: self.record.footprint(shared, rules),
            record: self.record.clone(),
            evidence: Mutex::default(),
            next: OnceLock::new(),
        }
    }

    /// Notes that it is not in the table any more, and what is there in its place.
    fn end(&self, next: Option<Arc<Self>>) {
        // only ever told once, by whoever takes it out
        let _ = self.next.set(next);
    }

    /// Returns what is in the table now in its place, if anything is.
    #[inline]
    fn latest(self: &Arc<Self>) -> Option<&Arc<Self>> {
        let mut latest = self;
        while let Some(next) = latest.next.get() {
            latest = next.as_ref()?;
        }
        Some(latest)
    }

    /// Returns what stands for the tool in its role.
    pub(crate) fn word(&self, role: Role) -> &ToolWord {
        match role {
            Role::Read => &self.reads,
            Role::Write => &self.writes,
        }
    }
}

impl Record {
    fn footprint(&self, shared: &Shared, rules: &ScopeRules) -> Footprint {
        let own = self.own.clone();
        Footprint::new(&shared.scopes, rules, &self.set, &self.tool, own)
    }

    /// Takes one more duration into the mean.
    pub(crate) fn took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mean = self.mean_duration.load(Ordering::Relaxed);
        // of two that end at once, one is lost: it is a mean
        let next = if mean == 0 {
            nanos
        } else {
            mean - mean / 8 + nanos / 8
        };
        self.mean_duration.store(next, Ordering::Relaxed);
    }

    pub(crate) fn mean_duration(&self) -> Option<Duration> {
        let nanos = self.mean_duration.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    fn stats(&self) -> ToolStats {
        ToolStats {
            set: self.set.clone(),
            tool: self.tool.clone(),
            counts: self.counters.snapshot(),
            entries: self.account.entries(),
            bytes: self.account.bytes(),
            mean_duration: self.mean_duration(),
        }
    }
}
