//! The audit log of a stack.

use callward_audit::{AuditLayer, AuditLog};

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
}
