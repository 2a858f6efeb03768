//! The audit log of a stack.

use std::sync::Arc;

use callward_audit::{AuditLayer, AuditLog};
use callward_core::{Caller, Inbound, ToolError};

use crate::builder::StackBuilder;
use crate::stack::Stack;

impl StackBuilder {
    /// Writes down calls as their plans ask. Default: nothing is written down.
    ///
    /// [Close](AuditLog::close) the log when the process ends: what still waits is written then.
    pub fn audit(mut self, log: AuditLog) -> Self {
        self.audit = AuditLayer::new(log);
        self
    }
}

impl Stack {
    /// Returns the audit log, if there is one.
    #[must_use]
    pub fn audit(&self) -> Option<&AuditLog> {
        self.0.audit.log.as_ref()
    }

    /// Writes into the audit log, if there is one, that a call of this name was refused before any
    /// layer saw it.
    pub fn note_refused(
        &self,
        tool: &str,
        caller: &Caller,
        inbound: Option<&Arc<Inbound>>,
        error: &ToolError,
    ) {
        if let Some(audit) = self.audit() {
            let entry = self.catalogue().find(tool).cloned();
            let known = entry.as_ref().map(|entry| &**entry.tool());
            audit.note_refused(tool, known, caller, inbound, error);
        }
    }
}
