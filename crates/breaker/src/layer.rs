//! The layer.

use std::sync::Arc;

use callward_core::{ServerId, ToolCall};
use tower_layer::Layer;

use crate::service::Site;
use crate::{Breaker, BreakerSet};

/// Puts a [`Breaker`] around the service of one server.
#[derive(Debug, Clone)]
pub struct BreakerLayer {
    site: Arc<Site>,
}

impl BreakerLayer {
    /// Makes the layer with a breaker for each tool of a server; the breakers live in the set.
    #[must_use]
    pub fn new(set: BreakerSet, server: ServerId) -> Self {
        Self {
            site: Arc::new(Site::of_tools(set, server)),
        }
    }

    /// Makes the layer with one breaker for a whole server, which lives in the set.
    #[must_use]
    pub fn of_server(set: &BreakerSet, server: ServerId) -> Self {
        Self {
            site: Arc::new(Site::of_server(set, server)),
        }
    }

    /// Says whether the layer's services would let this call through now. Takes no probe's place, so
    /// it is no promise: another call may be faster.
    #[must_use]
    pub fn lets_through(&self, call: &ToolCall) -> bool {
        self.site.lets_through(call)
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Service = Breaker<S>;

    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker::at(inner, self.site.clone())
    }
}
