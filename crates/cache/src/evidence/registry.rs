//! All evidence of one cache.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use callward_core::{ReplicaSetId, ToolName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::estimator::Test;
use super::file::StateFile;
use super::tool::{Common, SavedEvidence, ToolEvidence};
use crate::observed::Observers;

/// The pairs of tool and partition that are remembered.
pub(crate) const MAX_SUBJECTS: usize = 4_096;

/// What evidence is about: one definition of a tool, in one partition of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// The secret for the hashes of keys and partitions, which are the same after a restart.
    pub(crate) secret: (u64, u64),
    pub(super) tools: Mutex<Tools>,
    /// What else is learned of tools, kept in the same file.
    pub(crate) observers: Observers,
    /// `None` if it is in memory only.
    pub(super) file: Option<StateFile>,
}

#[derive(Debug, Default)]
pub(super) struct Tools {
    map: HashMap<Subject, Slot>,
    /// Counts uses.
    turn: u64,
}

#[derive(Debug)]
struct Slot {
    evidence: Arc<ToolEvidence>,
    used: u64,
}

impl Evidences {
    /// Starts without evidence, in memory only. `odds` is the largest P(different) that is allowed;
    /// above a half it counts as a half, and below 1e-9 nothing is ever allowed.
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
            observers: Observers::default(),
            file,
        }
    }

    /// Returns the evidence about a subject, new if there is none. Evidence about another
    /// definition of the tool is removed.
    pub(crate) fn of(&self, subject: &Subject) -> Arc<ToolEvidence> {
        let (common, saved) = (&self.common, SavedEvidence::default);
        let new = || ToolEvidence::restored(common.clone(), saved(), 1.0, Instant::now());
        self.tools.lock().enter(subject, new)
    }

    /// Returns all subjects with their evidence, the most recently used last.
    pub(crate) fn all(&self) -> Vec<(Subject, Arc<ToolEvidence>)> {
        let tools = self.tools.lock();
        let mut all: Vec<_> = tools.map.iter().collect();
        all.sort_unstable_by_key(|(_, slot)| slot.used);
        let both = all
            .into_iter()
            .map(|(subject, slot)| (subject.clone(), slot.evidence.clone()));
        both.collect()
    }
}

pub(super) fn random_secret() -> (u64, u64) {
    // std seeds each state from the system's random source
    let word = || RandomState::new().hash_one(0_u8);
    (word(), word())
}

impl Tools {
    /// Returns the evidence about a subject, made if there is none.
    pub(super) fn enter(
        &mut self,
        subject: &Subject,
        new: impl FnOnce() -> ToolEvidence,
    ) -> Arc<ToolEvidence> {
        self.turn += 1;
        if let Some(slot) = self.map.get_mut(subject) {
            slot.used = self.turn;
            return slot.evidence.clone();
        }
        self.map.retain(|known, _| {
            let is_same_tool = known.set == subject.set && known.tool == subject.tool;
            !is_same_tool || known.definition == subject.definition
        });
        if self.map.len() >= MAX_SUBJECTS {
            let oldest = self.map.values().map(|slot| slot.used).min();
            self.map.retain(|_, slot| Some(slot.used) != oldest);
        }
        let evidence = Arc::new(new());
        let slot = Slot {
            evidence: evidence.clone(),
            used: self.turn,
        };
        self.map.insert(subject.clone(), slot);
        evidence
    }
}
