//! The layer.

use tower_layer::Layer;

use crate::{Audit, AuditLog};

/// Wraps a service in [`Audit`].
#[derive(Debug, Clone, Default)]
pub struct AuditLayer {
    log: Option<AuditLog>,
}

impl AuditLayer {
    /// Creates a layer that records into `log`.
    #[must_use]
    pub const fn new(log: AuditLog) -> Self {
        Self { log: Some(log) }
    }

    /// Creates a layer that records nothing.
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
