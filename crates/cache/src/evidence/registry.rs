//! All evidence of one cache.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use callward_core::{ReplicaSetId, ToolName};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::estimator::Test;
use super::file::StateFile;
use super::tool::{Common, ToolEvidence};

/// The pairs of tool and partition that are remembered.
pub(crate) const MOST_SUBJECTS: usize = 4_096;

/// What evidence is about: one definition of a tool, in one partition of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) set: ReplicaSetId,
    pub(crate) tool: ToolName,
    /// The digest of the definition.
    pub(crate) definition: u128,
    pub(crate) partition: u128,
}

/// All evidence of one cache: of at most 4,096 subjects, those used most recently.
#[derive(Debug)]
pub(crate) struct Evidences {
    pub(super) common: Arc<Common>,
    secret: (u64, u64),
    tools: Mutex<Tools>,
    /// `None` if it is in memory only.
    pub(super) file: Option<StateFile>,
}

#[derive(Debug, Default)]
struct Tools {
    map: HashMap<(ReplicaSetId, ToolName), Definition>,
    /// How many pairs there are.
    count: usize,
    /// Counts uses.
    turn: u64,
}

/// The one definition of a tool that there is evidence about.
#[derive(Debug)]
struct Definition {
    digest: u128,
    partitions: HashMap<u128, Slot>,
}

#[derive(Debug)]
struct Slot {
    evidence: Arc<ToolEvidence>,
    used: u64,
}

impl Evidences {
    /// Starts without evidence, in memory only. `odds` is the largest P(different) that is allowed, 0
    /// to 1; odds above a half count as a half, and with odds below 1e-9 nothing is ever allowed.
    pub(crate) fn new(odds: f64) -> Self {
        Self::with_secret(odds, random_secret(), None)
    }

    pub(super) fn with_secret(odds: f64, secret: (u64, u64), file: Option<StateFile>) -> Self {
        Self {
            common: Arc::new(Common {
                test: Test::new(odds),
                keys: Arc::default(),
                changed: AtomicBool::new(false),
            }),
            secret,
            tools: Mutex::default(),
            file,
        }
    }

    /// Returns the secret under which keys and partitions are to be hashed, so that they mean the same
    /// after a restart.
    pub(crate) fn secret(&self) -> (u64, u64) {
        self.secret
    }

    /// Returns the evidence about a subject, new if there is none. That about another definition of the
    /// tool is dropped.
    pub(crate) fn of(&self, subject: &Subject) -> Arc<ToolEvidence> {
        let new = || ToolEvidence::new(self.common.clone(), Instant::now());
        self.tools.lock().enter(subject, new)
    }

    /// Puts evidence in place that was kept.
    pub(super) fn restore(&self, subject: &Subject, evidence: ToolEvidence) {
        self.tools.lock().enter(subject, || evidence);
    }

    /// Returns all subjects with their evidence, the most recently used last.
    pub(crate) fn all(&self) -> Vec<(Subject, Arc<ToolEvidence>)> {
        let tools = self.tools.lock();
        let mut all = Vec::with_capacity(tools.count);
        for ((set, tool), definition) in &tools.map {
            for (partition, slot) in &definition.partitions {
                let subject = Subject {
                    set: set.clone(),
                    tool: tool.clone(),
                    definition: definition.digest,
                    partition: *partition,
                };
                all.push((slot.used, subject, slot.evidence.clone()));
            }
        }
        drop(tools);
        all.sort_unstable_by_key(|(used, ..)| *used);
        all.into_iter()
            .map(|(_, subject, evidence)| (subject, evidence))
            .collect()
    }
}

pub(super) fn random_secret() -> (u64, u64) {
    // std seeds each state from the system's random source
    let word = || RandomState::new().hash_one(0_u8);
    (word(), word())
}

impl Tools {
    fn enter(
        &mut self,
        subject: &Subject,
        new: impl FnOnce() -> ToolEvidence,
    ) -> Arc<ToolEvidence> {
        self.turn += 1;
        let used = self.turn;
        let name = (subject.set.clone(), subject.tool.clone());
        if let Some(definition) = self.map.get_mut(&name) {
            if definition.digest != subject.definition {
                self.count -= definition.partitions.len();
                self.map.remove(&name);
            } else if let Some(slot) = definition.partitions.get_mut(&subject.partition) {
                slot.used = used;
                return slot.evidence.clone();
            }
        }
        if self.count >= MOST_SUBJECTS {
            self.remove_oldest();
        }
        let evidence = Arc::new(new());
        let slot = Slot {
            evidence: evidence.clone(),
            used,
        };
        let definition = self.map.entry(name).or_insert_with(|| Definition {
            digest: subject.definition,
            partitions: HashMap::new(),
        });
        definition.partitions.insert(subject.partition, slot);
        self.count += 1;
        evidence
    }

    fn remove_oldest(&mut self) {
        let slots = self.map.iter().flat_map(|(name, definition)| {
            let slots = definition.partitions.iter();
            slots.map(move |(partition, slot)| (slot.used, name, *partition))
        });
        let oldest = slots.min_by_key(|(used, ..)| *used);
        let Some((name, partition)) = oldest.map(|(_, name, partition)| (name.clone(), partition))
        else {
            return;
        };
        if let Some(definition) = self.map.get_mut(&name) {
            definition.partitions.remove(&partition);
            self.count -= 1;
            if definition.partitions.is_empty() {
                self.map.remove(&name);
            }
        }
    }
}
