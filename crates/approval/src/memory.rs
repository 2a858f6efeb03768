//! A store in memory.

use std::future::ready;
use std::sync::Arc;

use callward_core::BoxFuture;
use parking_lot::Mutex;

use crate::table::Table;
use crate::{Bounds, Key, Put, Request, RequestId, Store, StoreError};

/// A store in memory, which ends with the process. Its clones are one store, also for several
/// [`Approvals`](crate::Approvals).
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Table>>);

impl MemoryStore {
    fn with<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Table) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        Box::pin(ready(Ok(ask(&mut self.0.lock()))))
    }
}

impl Store for MemoryStore {
    fn put(
        &self,
        request: Arc<Request>,
        latest: Option<RequestId>,
        bounds: Bounds,
    ) -> BoxFuture<'_, Result<Put, StoreError>> {
        self.with(|table| {
            let put = table.may_put(&request, latest.as_ref(), bounds);
            if put == Put::Added {
                table.insert(request);
            }
            put
        })
    }

    fn get(&self, id: RequestId) -> BoxFuture<'_, Result<Option<Arc<Request>>, StoreError>> {
        self.with(|table| table.get(&id))
    }

    fn latest(&self, key: Key) -> BoxFuture<'_, Result<Option<Arc<Request>>, StoreError>> {
        self.with(|table| table.latest(&key))
    }

    fn replace(&self, request: Arc<Request>) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.with(|table| {
            let may = table.may_replace(&request);
            if may {
                table.insert(request);
            }
            may
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Arc<Request>>, StoreError>> {
        self.with(|table| table.list())
    }

    fn remove_ended(&self, before_ms: u64, most: usize) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(|table| {
            let outdated = table.outdated(before_ms, most);
            table.remove_all(&outdated);
        })
    }

    fn is_shared(&self) -> bool {
        true
    }
}
