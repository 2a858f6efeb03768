//! The tools of one set in a snapshot.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use callward_core::{ServerId, Tool, ToolName};

use crate::catalogue::{Entry, Refusal, ToolNames};
use crate::index::Index;
use crate::pins::ToolChange;
use crate::shown::Shown;

/// The tools of one set in a snapshot. Snapshots share the parts of sets that did not change, and
/// with them what was computed for searches.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// In the order that clients see.
    pub(crate) entries: Vec<Arc<Entry>>,
    by_tool: HashMap<ToolName, u32, foldhash::quality::RandomState>,
    pub(crate) methods: Vec<Arc<Entry>>,
    /// Which server lists which tools.
    pub(crate) servers: Vec<(ServerId, Arc<ToolNames>)>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) held: Vec<Arc<ToolChange>>,
    /// Names of tools of the set that are not offered now: no alias of another tool.
    pub(crate) reserved: Vec<Arc<str>>,
    /// A listed tool is not offered, which what happens to other sets may change.
    pub(crate) is_incomplete: bool,
    index: OnceLock<Index>,
}

impl Part {
    /// Adds a tool at the end.
    pub(crate) fn push(&mut self, entry: Arc<Entry>) {
        // a set has less than 2^32 tools, as each takes some bytes of the largest list
        let at = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.by_tool.insert(entry.tool().name().clone(), at);
        self.entries.push(entry);
    }

    /// Finds a tool by its own name.
    pub(crate) fn find(&self, tool: &str) -> Option<&Arc<Entry>> {
        self.entries.get(*self.by_tool.get(tool)? as usize)
    }

    /// Returns the entry of this instance of a tool under this name.
    pub(crate) fn same(
        &self,
        tool: &Arc<Tool>,
        name: &str,
        shown: Option<&Shown>,
    ) -> Option<Arc<Entry>> {
        let entry = self.find(tool.name().as_str())?;
        let is_same = Arc::ptr_eq(entry.tool(), tool)
            && entry.client_name() == name
            && entry.shown() == shown;
        is_same.then(|| entry.clone())
    }

    /// Returns what searches read; made when the first one does.
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.entries))
    }
}
