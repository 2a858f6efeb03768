//! The layer.

use tollgate_core::ServerId;
use tower_layer::Layer;

use crate::{Breaker, BreakerSet};

/// Puts a [`Breaker`] around the service of one server.
#[derive(Debug, Clone)]
pub struct BreakerLayer {
    set: BreakerSet,
    server: ServerId,
}

impl BreakerLayer {
    /// Makes the layer of a server; its breakers live in the set.
    #[must_use]
    pub const fn new(set: BreakerSet, server: ServerId) -> Self {
        Self { set, server }
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Service = Breaker<S>;

    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker::new(inner, self.set.clone(), self.server.clone())
    }
}
