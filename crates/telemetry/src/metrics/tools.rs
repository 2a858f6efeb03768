//! What is recorded of each tool's calls, found without a look-up by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use callward_core::{ByTool, ReplicaSetId, Tool, ToolName};
use opentelemetry::KeyValue;

use super::Series;
use super::instruments::Instruments;
use super::of_tool::OfTool;
use crate::names;

/// What is recorded of each tool, for as long as the tool is there or calls of it run.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) instruments: Instruments,
    /// Found by the address of the tool's version.
    by_tool: ByTool<Arc<OfTool>>,
    /// Those that have no place there, and those whose version is new.
    by_name: Mutex<HashMap<(ReplicaSetId, ToolName), Known>>,
}

#[derive(Debug)]
struct Known {
    of: Arc<OfTool>,
    /// The version called last. Once it is gone, so is the tool, or nobody has called its new version:
    /// a call holds the version it calls.
    version: Weak<Tool>,
}

impl Tools {
    pub(super) fn new(instruments: Instruments) -> Self {
        Self {
            instruments,
            by_tool: ByTool::new(),
            by_name: Mutex::default(),
        }
    }

    /// Does something with what is recorded of a tool.
    pub(super) fn with(&self, tool: &Arc<Tool>, act: impl FnOnce(&OfTool)) {
        self.by_tool.with(tool, || self.look_up(tool), |of| act(of));
    }

    fn look_up(&self, tool: &Arc<Tool>) -> Arc<OfTool> {
        let mut by_name = self.lock();
        let known = by_name
            .entry((tool.set().clone(), tool.name().clone()))
            .or_insert_with(|| Known {
                of: Arc::new(OfTool::default()),
                version: Weak::new(),
            });
        known.version = Arc::downgrade(tool);
        known.of.clone()
    }

    /// Tells of all calls, or of all attempts, by tool. Forgets tools that are gone.
    pub(super) fn tell(&self, series: &mut Series<u64>, read: impl Fn(&OfTool, &mut Tell<'_>)) {
        let mut by_name = self.lock();
        by_name.retain(|_, known| known.version.strong_count() > 0);
        for ((set, tool), known) in by_name.iter() {
            let named = of(set, tool);
            read(&known.of, &mut |count,
                                  more: &mut dyn Iterator<
                Item = KeyValue,
            >| {
                series.add(count, named.iter().cloned().chain(more));
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ReplicaSetId, ToolName), Known>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a count, and the attributes that it has beside those of its tool.
pub(super) type Tell<'a> = dyn FnMut(u64, &mut dyn Iterator<Item = KeyValue>) + 'a;

/// The attributes that name a tool.
pub(super) fn of(set: &ReplicaSetId, tool: &ToolName) -> [KeyValue; 2] {
    [
        KeyValue::new(names::TOOL, tool.as_str().to_owned()),
        KeyValue::new(names::SERVER_SET, set.as_str().to_owned()),
    ]
}
