//! What tools do that their hints do not say: reads that write, and writes that fail when repeated.
//!
//! **Reads that write.** An execution of a read and the next one of the same call make a window, if
//! nothing else of the set ran at the same time as either, and nothing that both depend on was
//! written in between. Where nothing ran in between, the window is a *control*; where only one
//! tool did, it is a *trial* of that tool. Each trial is compared with a control of the same
//! call that is at least as long, not older than ten minutes and not compared yet. A pair
//! counts only if the answer changed in one of the two windows. If the tool changes nothing, what
//! changes is as likely to do so in the longer control, however often it happens: a clock, or
//! others who write. So the product of 0.9 / 0.5 for each pair with a changed trial and of
//! 0.1 / 0.5 for each with a changed control is a supermartingale, and by Ville's inequality it
//! ever reaches 10⁹ with a chance of at most 10⁻⁹. Then the tool is observed to write. That takes
//! at least 36 pairs; one call counts for at most 16 of them, so that it takes three calls, too.
//!
//! A window in which two tools ran says nothing, so of two tools that always run together neither
//! is blamed.
//!
//! **Writes that fail when repeated.** A write of an idempotent tool succeeds, and an equal one by
//! the same principal is answered with an error that says that something exists already. Two such
//! pairs with different arguments are enough.
//!
//! What is observed belongs to one definition of a tool: another one starts again.

mod conduct;
mod order;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callward_core::{
    Delivery, Method, Observation, ReplicaSetId, Tool, ToolError, ToolName, ToolOutput,
};
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use conduct::Conduct;
pub(crate) use order::{Place, Running};

use conduct::says_exists;
use order::Order;
use windows::Controls;

/// The sets that are observed; beyond, those that no tool uses are dropped.
const MAX_SETS: usize = 1_024;
/// The tools that are observed in one set.
const MAX_TOOLS: usize = 1_024;
/// The successful writes that are remembered in one set.
const MAX_WRITES: usize = 1_024;

/// An observation of one definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// The set of the tool.
    pub set: ReplicaSetId,
    /// The tool.
    pub tool: ToolName,
    /// The [digest](Tool::digest) of its definition.
    pub definition: u128,
    /// Which hint it makes stricter, and why.
    pub observation: Observation,
}

type Listener = Box<dyn Fn(Observed) + Send + Sync>;

/// The observers of all sets.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    sets: DashMap<ReplicaSetId, Arc<SetObserver>>,
    common: Arc<Common>,
}

#[derive(Default)]
struct Common {
    /// Whether anything is new since the last snapshot.
    changed: AtomicBool,
    listener: OnceLock<Listener>,
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common")
            .field("changed", &self.changed)
            .finish_non_exhaustive()
    }
}

/// Observes the tools of one set.
#[derive(Debug)]
pub(crate) struct SetObserver {
    set: ReplicaSetId,
    common: Arc<Common>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    order: Order,
    controls: Controls,
    /// The writes of idempotent tools that succeeded, by the hash of the call.
    succeeded: HashSet<u128>,
    tools: HashMap<ToolName, Conduct>,
}

impl Observers {
    /// Returns the observer of a set.
    pub(crate) fn of(&self, set: &ReplicaSetId) -> Arc<SetObserver> {
        if let Some(known) = self.sets.get(set) {
            return known.clone();
        }
        if self.sets.len() >= MAX_SETS {
            self.sets.retain(|_, known| Arc::strong_count(known) > 1);
        }
        let new = || {
            Arc::new(SetObserver {
                set: set.clone(),
                common: self.common.clone(),
                inner: Mutex::default(),
            })
        };
        self.sets.entry(set.clone()).or_insert_with(new).clone()
    }

    /// Calls this with each new observation, from the task of a call. Only the first one counts.
    pub(crate) fn on_observation(&self, listener: Listener) {
        let _first_counts = self.common.listener.set(listener);
    }

    /// Returns all observations.
    pub(crate) fn all(&self) -> Vec<Observed> {
        let saved = self.saved().into_iter();
        let each = saved.flat_map(|(set, tool, conduct)| {
            let definition = conduct.definition;
            let of_tool = conduct.observations.into_iter();
            of_tool.map(move |observation| Observed {
                set: set.clone(),
                tool: tool.clone(),
                definition,
                observation,
            })
        });
        each.collect()
    }

    /// Returns what is known of all tools.
    pub(crate) fn saved(&self) -> Vec<(ReplicaSetId, ToolName, Conduct)> {
        let mut all = Vec::new();
        for observer in &self.sets {
            let inner = observer.inner.lock();
            let of_set = inner.tools.iter();
            all.extend(
                of_set.map(|(tool, known)| (observer.set.clone(), tool.clone(), known.clone())),
            );
        }
        all
    }

    /// Takes what was saved.
    pub(crate) fn restore(&self, saved: Vec<(ReplicaSetId, ToolName, Conduct)>) {
        for (set, tool, conduct) in saved.into_iter().take(MAX_SETS * MAX_TOOLS) {
            self.of(&set).inner.lock().tools.insert(tool, conduct);
        }
    }

    /// Returns `true` if anything is new since the last time.
    pub(crate) fn take_changed(&self) -> bool {
        self.common.changed.swap(false, Ordering::Relaxed)
    }
}

impl SetObserver {
    /// Notes that a call is sent.
    pub(crate) fn begin(self: &Arc<Self>, tool: &Tool, reads: bool) -> Running {
        // what a method does is known
        let reads = reads && tool.definition.method == Method::CallTool;
        let begun = self
            .inner
            .lock()
            .order
            .begin(tool.name(), tool.digest(), reads);
        Running::new(self.clone(), begun)
    }

    /// Takes a window: the call of this hash was executed at `place`, `gap` after its last
    /// execution, which had the number `last`.
    pub(crate) fn repeat(&self, call: u128, gap: Duration, changed: bool, last: u64, at: &Place) {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        if at.number == last + 1 {
            return inner.controls.put(call, now, gap, changed);
        }
        let only = at.before.as_ref().filter(|run| run.from <= last + 1);
        let Some(run) = only.filter(|run| run.reads) else {
            return;
        };
        let control = inner.controls.take(call, now, gap);
        if control.is_none_or(|control| control == changed) {
            return;
        }
        let conduct = inner.conduct(&run.tool, run.definition);
        let seen = conduct.and_then(|conduct| conduct.add_pair(call, changed));
        drop(inner);
        self.note(&run.tool, run.definition, seen);
    }

    /// Takes the end of a write of an idempotent tool, which was sent once.
    pub(crate) fn wrote(&self, tool: &Tool, call: u128, result: &Result<ToolOutput, ToolError>) {
        let failed = match result {
            Ok(output) => output.is_error().then(|| output.to_text()),
            Err(error) if error.delivery != Delivery::Answered => return,
            Err(error) => Some(match error.http_status {
                Some(409) => format!("status 409 {}", error.message),
                _ => error.message.to_string(),
            }),
        };
        let mut inner = self.inner.lock();
        let Some(text) = failed else {
            if inner.succeeded.len() >= MAX_WRITES {
                inner.succeeded.clear();
            }
            inner.succeeded.insert(call);
            return;
        };
        if !inner.succeeded.contains(&call) || !says_exists(&text) {
            return;
        }
        let conduct = inner.conduct(tool.name(), tool.digest());
        let seen = conduct.and_then(|conduct| conduct.add_refused(call));
        drop(inner);
        self.note(tool.name(), tool.digest(), seen);
    }

    fn note(&self, tool: &ToolName, definition: u128, seen: Option<Observation>) {
        self.common.changed.store(true, Ordering::Relaxed);
        let Some(observation) = seen else {
            return;
        };
        let Observation { field, reason } = &observation;
        tracing::warn!(set = %self.set, %tool, %field, reason, "a hint of a tool is wrong");
        if let Some(listener) = self.common.listener.get() {
            listener(Observed {
                set: self.set.clone(),
                tool: tool.clone(),
                definition,
                observation,
            });
        }
    }
}

impl Inner {
    /// Returns what is known of this definition of a tool; `None` if there are too many tools.
    fn conduct(&mut self, tool: &ToolName, definition: u128) -> Option<&mut Conduct> {
        if !self.tools.contains_key(tool) && self.tools.len() >= MAX_TOOLS {
            self.tools.retain(|_, known| !known.observations.is_empty());
            if self.tools.len() >= MAX_TOOLS {
                return None;
            }
        }
        let known = self.tools.entry(tool.clone()).or_default();
        if known.definition != definition {
            *known = Conduct::of(definition);
        }
        Some(known)
    }
}
