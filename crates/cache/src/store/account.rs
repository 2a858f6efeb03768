//! How much a group of entries takes, known without looking for them.

use std::sync::atomic::{AtomicU64, Ordering};

use callward_core::{ReplicaSetId, ToolName};

/// How many entries a group has, and how many bytes they take: those of one tool, say.
///
/// An entry made [`with_account`](super::Entry::with_account) is added when a store takes it in, and
/// taken out when the store drops it.
#[derive(Debug, Default)]
pub struct Account {
    tool: Option<(ReplicaSetId, ToolName)>,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Account {
    /// Opens an account for the results of one tool.
    #[must_use]
    pub fn of_tool(set: ReplicaSetId, tool: ToolName) -> Self {
        Self {
            tool: Some((set, tool)),
            ..Self::default()
        }
    }

    /// Returns the tool whose results these are, if they are one tool's.
    #[must_use]
    pub fn tool(&self) -> Option<(&ReplicaSetId, &ToolName)> {
        self.tool.as_ref().map(|(set, tool)| (set, tool))
    }

    /// Returns how many entries there are.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns how many bytes they take, keys and bookkeeping included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn take_out(&self, bytes: u64) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
