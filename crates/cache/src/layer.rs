//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use crate::CacheConfig;
use crate::handle::CacheHandle;
use crate::service::Cache;
use crate::shared::Shared;
use crate::store::{MokaStore, Store};

/// Puts a [`Cache`] around a service. All services one layer makes share one cache.
#[derive(Debug, Clone)]
pub struct CacheLayer {
    shared: Arc<Shared>,
}

impl CacheLayer {
    /// Keeps entries in this process.
    #[must_use]
    pub fn new(config: CacheConfig) -> Self {
        let store = Arc::new(MokaStore::new(config.max_bytes));
        Self::with_store(config, store)
    }

    /// Keeps entries in a store of your own; `max_bytes` is then its affair.
    #[must_use]
    pub fn with_store(config: CacheConfig, store: Arc<dyn Store>) -> Self {
        Self {
            shared: Arc::new(Shared::new(config, store)),
        }
    }

    /// Returns a handle to look into the cache and to empty it.
    #[must_use]
    pub fn handle(&self) -> CacheHandle {
        CacheHandle::new(self.shared.clone())
    }
}

impl Default for CacheLayer {
    fn default() -> Self {
        Self::new(CacheConfig::default())
    }
}

impl<S> Layer<S> for CacheLayer {
    type Service = Cache<S>;

    fn layer(&self, inner: S) -> Cache<S> {
        Cache::new(inner, self.shared.clone())
    }
}
