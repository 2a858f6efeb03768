//! The layer.

use tower_layer::Layer;

use super::{AttemptTimeout, Cap};

/// Puts an [`AttemptTimeout`] around a service.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptTimeoutLayer {
    cap: Cap,
}

impl AttemptTimeoutLayer {
    /// Makes a layer with the default cap: progress stretches an attempt up to ten times.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how far progress stretches an attempt. A cap below the timeout counts as the timeout.
    #[must_use]
    pub const fn with_cap(mut self, cap: Cap) -> Self {
        self.cap = cap;
        self
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        AttemptTimeout::new(inner, self.cap)
    }
}
