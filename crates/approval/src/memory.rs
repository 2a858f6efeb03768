//! A store in the memory of this process, and in a file if it is to outlive it.

use std::future::ready;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::spawn_blocking;

#[cfg(feature = "store")]
use crate::file::File;
use crate::store::Stored;
use crate::table::Table;
use crate::{Bounds, Grant, Key, Put, Request, RequestId, Store, StoreError};

/// What there is without the feature `store`.
#[cfg(not(feature = "store"))]
#[derive(Debug)]
pub(crate) enum File {}

#[cfg(not(feature = "store"))]
impl File {
    fn write(&self, _: &[&Request], _: &[&Grant], _: &[RequestId]) -> Result<(), StoreError> {
        match *self {}
    }
}

/// A store in this process. Its clones are one store, also for several
/// [`Approvals`](crate::Approvals).
///
/// The default is in memory and ends with the process. With the feature `store`, `open` keeps it in
/// a file.
#[derive(Debug, Clone, Default)]
pub struct LocalStore(pub(crate) Arc<Local>);

#[derive(Debug, Default)]
pub(crate) struct Local {
    pub(crate) table: Mutex<Table>,
    pub(crate) file: Option<File>,
}

impl Local {
    /// Writes into the file, if there is one: first, so that no one sees what is lost at a crash.
    fn write(
        &self,
        new: &[&Request],
        grants: &[&Grant],
        gone: &[RequestId],
    ) -> Result<(), StoreError> {
        match &self.file {
            Some(file) => file.write(new, grants, gone),
            None => Ok(()),
        }
    }
}

impl LocalStore {
    fn with<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Local, &mut Table) -> Result<T, StoreError> + Send + 'static,
    ) -> Stored<'static, T> {
        let local = self.0.clone();
        if local.file.is_none() {
            let mut table = local.table.lock();
            return Box::pin(ready(ask(&local, &mut table)));
        }
        Box::pin(async move {
            let done = spawn_blocking(move || ask(&local, &mut local.table.lock())).await;
            done.unwrap_or_else(|ended| Err(StoreError::failed(ended)))
        })
    }
}

impl Store for LocalStore {
    fn put(&self, new: Arc<Request>, latest: Option<RequestId>, most: Bounds) -> Stored<'_, Put> {
        self.with(move |local, table| {
            let put = table.may_put(&new, latest.as_ref(), most);
            if put == Put::Added {
                let grant = table.grant_after(&new);
                local.write(&[&new], grant.as_deref().as_slice(), &[])?;
                table
                    .grants
                    .extend(grant.map(|grant| (grant.id.clone(), grant)));
                table.insert(new);
            }
            Ok(put)
        })
    }

    fn get(&self, id: RequestId) -> Stored<'_, Option<Arc<Request>>> {
        self.with(move |_, table| Ok(table.get(&id)))
    }

    fn latest(&self, key: Key) -> Stored<'_, Option<Arc<Request>>> {
        self.with(move |_, table| Ok(table.latest(&key)))
    }

    fn replace(&self, next: Arc<Request>) -> Stored<'_, bool> {
        self.with(move |local, table| {
            let may = table.may_replace(&next);
            if may {
                local.write(&[&next], &[], &[])?;
                table.insert(next);
            }
            Ok(may)
        })
    }

    fn list(&self) -> Stored<'_, Vec<Arc<Request>>> {
        self.with(|_, table| Ok(table.list()))
    }

    fn remove_ended(&self, before_ms: u64, most: usize) -> Stored<'_, ()> {
        self.with(move |local, table| {
            let outdated = table.outdated(before_ms, most);
            if !outdated.is_empty() {
                local.write(&[], &[], &outdated)?;
            }
            table.remove_all(&outdated);
            Ok(())
        })
    }

    fn put_grant(&self, new: Arc<Grant>) -> Stored<'_, bool> {
        self.with(move |local, table| {
            let may = table.grants.len() < Grant::MOST;
            if may {
                local.write(&[], &[&new], &[])?;
                table.grants.insert(new.id.clone(), new);
            }
            Ok(may)
        })
    }

    fn grants(&self) -> Stored<'_, Vec<Arc<Grant>>> {
        self.with(|_, table| Ok(table.grants.values().cloned().collect()))
    }

    fn remove_grant(&self, id: RequestId) -> Stored<'_, bool> {
        self.with(move |local, table| {
            let is_there = table.grants.contains_key(&id);
            if is_there {
                local.write(&[], &[], std::slice::from_ref(&id))?;
                table.grants.remove(&id);
            }
            Ok(is_there)
        })
    }

    fn is_shared(&self) -> bool {
        self.0.file.is_none()
    }
}
