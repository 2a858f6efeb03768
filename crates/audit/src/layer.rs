//! The layer.

use tower_layer::Layer;

use crate::{Audit, AuditLog};

/// Puts an [`Audit`] around a service.
#[derive(Debug, Clone, Default)]
pub struct AuditLayer {
    log: Option<AuditLog>,
}

impl AuditLayer {
    /// Writes into this log.
    #[must_use]
    pub const fn new(log: AuditLog) -> Self {
        Self { log: Some(log) }
    }

    /// Makes a layer that passes every call, and costs a look at an empty pointer.
    #[must_use]
    pub const fn off() -> Self {
        Self { log: None }
    }

    /// Returns the log, if there is one.
    #[must_use]
    pub const fn log(&self) -> Option<&AuditLog> {
        self.log.as_ref()
    }
}

impl<S> Layer<S> for AuditLayer {
    type Service = Audit<S>;

    fn layer(&self, inner: S) -> Audit<S> {
        Audit::new(inner, self.log.clone())
    }
}
