//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use crate::config::CacheConfig;
use crate::evidence::{Evidences, wall};
use crate::handle::CacheHandle;
use crate::service::Cache;
use crate::shared::Shared;
use crate::store::MokaStore;

/// Puts a [`Cache`] around a service. All services of one layer share one cache.
///
/// ```
/// use serde_json::json;
/// use callward_cache::{CacheConfig, CacheLayer};
/// use callward_testkit::{MockService, call, tool};
/// use tower::{Layer, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), callward_core::ToolError> {
/// let layer = CacheLayer::new(CacheConfig::default());
/// let server = MockService::counting();
/// let cache = layer.layer(server.clone());
///
/// let get = tool("get_order").read_only().build();
/// cache.clone().oneshot(call(&get, json!({"id": 7}))).await?;
/// cache.clone().oneshot(call(&get, json!({"id": 7}))).await?;
/// assert_eq!(server.started(), 1);
///
/// let ship = tool("ship_order").build();
/// cache.clone().oneshot(call(&ship, json!({"id": 7}))).await?;
/// cache.oneshot(call(&get, json!({"id": 7}))).await?;
/// assert_eq!(server.started(), 3);
/// assert_eq!(layer.handle().stats().hits, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct CacheLayer {
    shared: Arc<Shared>,
}

impl CacheLayer {
    /// Keeps entries in a store of its own.
    pub fn new(config: CacheConfig) -> Self {
        let store = MokaStore::new(&config);
        Self::with_store(config, store)
    }

    /// Keeps entries in a store that other layers may share; `max_bytes` is then the store's.
    pub fn with_store(config: CacheConfig, store: MokaStore) -> Self {
        let evidence = evidence(&config);
        Self {
            shared: Arc::new(Shared::new(config, store, evidence)),
        }
    }

    /// Returns a handle to inspect and purge the cache.
    #[must_use]
    pub fn handle(&self) -> CacheHandle {
        let shared = self.shared.clone();
        CacheHandle { shared }
    }
}

/// Opens the evidence file of the config. Without it evidence stays in memory.
fn evidence(config: &CacheConfig) -> Evidences {
    let odds = config.stale_odds;
    let Some(path) = &config.evidence_file else {
        return Evidences::new(odds);
    };
    Evidences::open(path, odds, wall()).unwrap_or_else(|error| {
        let path = path.display();
        tracing::warn!(%path, %error, "cannot open the evidence file: keeping evidence in memory");
        Evidences::new(odds)
    })
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
