//! What is seen of tools while they run: from the cache, which finds it out, to the registry, which
//! makes plans of it.

use std::sync::Arc;

use tollgate_core::infer::Volatile;
use tollgate_core::{ReplicaSetId, Tool, ToolName};
use tollgate_registry::Changes;

use crate::scan::Shared;

impl Shared {
    /// Has the cache tell of tools whose answers change. It must not keep alive what it tells.
    pub(crate) fn follow_cache(self: &Arc<Self>) {
        let shared = Arc::downgrade(self);
        let first = self.cache.on_volatile(move |tool, evidence| {
            if let Some(shared) = shared.upgrade() {
                shared.observe(tool, evidence);
            }
        });
        debug_assert!(first, "a stack makes its cache itself");
    }

    fn observe(&self, tool: &Tool, evidence: &str) {
        let changes = self.registry.observe(tool, Volatile::observed(evidence));
        self.notify(&changes);
    }

    /// Forgets what was observed of a tool; says whether there was anything.
    pub(crate) fn take_back(&self, set: &ReplicaSetId, tool: &ToolName) -> bool {
        let changes = self.registry.take_back(set, tool);
        // after the plan: what is answered in between is not kept under the old one either
        self.cache.trust_again(set, tool);
        self.notify(&changes);
        !changes.is_empty()
    }

    /// Tells clients of changes; also where the definitions they see are the same, but the plans beside
    /// them are not.
    pub(crate) fn notify(&self, changes: &Changes) {
        if !changes.is_empty() {
            self.changed.send_modify(|count| *count += 1);
        }
    }
}
