//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use crate::config::{CacheConfig, StoreKind};
use crate::evidence::Evidences;
use crate::handle::CacheHandle;
use crate::service::Cache;
use crate::shared::Shared;
#[cfg(feature = "lean")]
use crate::store::LeanStore;
use crate::store::{MokaStore, Store};

/// Puts a [`Cache`] around a service. All services one layer makes share one cache.
#[derive(Debug, Clone)]
pub struct CacheLayer {
    shared: Arc<Shared>,
}

impl CacheLayer {
    /// Keeps entries in this process, in the [`store`](CacheConfig::store) that the config names.
    #[must_use]
    pub fn new(config: CacheConfig) -> Self {
        let bytes = config.max_bytes;
        let store: Arc<dyn Store> = match config.store {
            StoreKind::Moka => {
                Arc::new(MokaStore::with_slow_threshold(bytes, config.slow_threshold))
            }
            #[cfg(feature = "lean")]
            StoreKind::Lean => Arc::new(LeanStore::new(bytes)),
        };
        Self::with_store(config, store)
    }

    /// Keeps entries in a store of your own; `max_bytes`, `store` and `slow_threshold` are then its
    /// affair.
    #[must_use]
    pub fn with_store(config: CacheConfig, store: Arc<dyn Store>) -> Self {
        let evidence = evidence(&config);
        Self {
            shared: Arc::new(Shared::new(config, store, evidence)),
        }
    }

    /// Returns a handle to look into the cache and to empty it.
    #[must_use]
    pub fn handle(&self) -> CacheHandle {
        CacheHandle::new(self.shared.clone())
    }
}

/// Opens the evidence that the config names. Without it the cache works all the same.
fn evidence(config: &CacheConfig) -> Evidences {
    let odds = config.stale_odds;
    let Some(path) = &config.evidence_file else {
        return Evidences::new(odds);
    };
    match Evidences::open(path, odds) {
        Ok(Some(evidence)) => evidence,
        Ok(None) => {
            tracing::info!(path = %path.display(), "another process holds the evidence of freshness; keeping its own in memory");
            Evidences::new(odds)
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the evidence of freshness cannot be opened; keeping it in memory");
            Evidences::new(odds)
        }
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
