//! A store in a file of this process.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use callward_core::BoxFuture;
use parking_lot::Mutex;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::task::spawn_blocking;

use crate::seal::{Sealer, private};
use crate::table::Table;
use crate::{Bounds, Key, Put, Request, RequestId, Store, StoreError};

/// Requests by name, sealed.
const REQUESTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("requests");
/// The place of a sealed word, by which a wrong key is noticed.
const CHECK: &str = "check";

/// A store in a file, which one process has open at a time.
///
/// Each change is on disk before its future ends. The file and its key, a file of the same name
/// with the extension `key`, are for this user alone (mode 0600); what is written is sealed with
/// ChaCha20-Poly1305, so that neither arguments can be read nor states be changed without the key.
/// All requests are in memory as well.
#[derive(Clone)]
pub struct FileStore(Arc<Inner>);

struct Inner {
    database: Database,
    sealer: Sealer,
    table: Mutex<Table>,
    path: String,
}

impl FileStore {
    /// Opens the file, or makes it, and its key if both are new.
    ///
    /// # Errors
    ///
    /// [`StoreError`] says what is wrong with the file or its key, and what to do.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let shown = path.display().to_string();
        let opened = spawn_blocking(move || open(&path)).await;
        // the library may panic at a file that was damaged with care
        let damaged = |_| StoreError::Damaged {
            path: shown,
            reason: "it cannot be read".to_owned(),
        };
        Ok(Self(Arc::new(opened.map_err(damaged)??)))
    }

    fn with<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let done = spawn_blocking(move || ask(&inner)).await;
            done.unwrap_or_else(|ended| Err(StoreError::failed(ended)))
        })
    }
}

fn open(path: &Path) -> Result<Inner, StoreError> {
    let (key, shown) = (path.with_extension("key"), path.display().to_string());
    let length = fs::metadata(path).map_or(0, |file| file.len());
    let wrong_key = || StoreError::WrongKey {
        path: shown.clone(),
        key: key.display().to_string(),
    };
    let sealer = Sealer::open(&key, length == 0).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::InvalidData => wrong_key(),
        _ => StoreError::failed(error),
    })?;
    drop(private(path, false).map_err(StoreError::failed)?);
    let damaged = |reason: String| StoreError::Damaged {
        path: shown.clone(),
        reason,
    };
    let mut builder = Builder::new();
    builder
        .set_check_integrity_on_open(true)
        .set_cache_size(CACHE_BYTES);
    let database = builder.create(path).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            StoreError::InUse {
                path: shown.clone(),
            }
        }
        DatabaseError::Storage(redb::StorageError::Io(error))
            if error.kind() != ErrorKind::InvalidData =>
        {
            StoreError::failed(error)
        }
        other => damaged(other.to_string()),
    })?;
    let inner = Inner {
        database,
        sealer,
        table: Mutex::default(),
        path: shown.clone(),
    };
    let mut found = Vec::new();
    let read = inner.database.begin_read().map_err(StoreError::failed)?;
    match read.open_table(REQUESTS) {
        Ok(table) => {
            let check = table
                .get(CHECK)
                .map_err(|error| damaged(error.to_string()))?;
            let opened = check.map(|check| inner.sealer.open_sealed(CHECK, check.value()));
            opened
                .ok_or_else(|| damaged("it has no check".to_owned()))?
                .ok_or_else(wrong_key)?;
            for row in table.iter().map_err(|error| damaged(error.to_string()))? {
                let (name, sealed) = row.map_err(|error| damaged(error.to_string()))?;
                if name.value() == CHECK {
                    continue;
                }
                let opened = inner.sealer.open_sealed(name.value(), sealed.value());
                let request = opened.and_then(|raw| serde_json::from_slice::<Request>(&raw).ok());
                let unreadable = || damaged(format!("request {} cannot be read", name.value()));
                found.push(request.ok_or_else(unreadable)?);
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => inner.write(&[(CHECK, Vec::new())], &[])?,
        Err(error) => return Err(damaged(error.to_string())),
    }
    // the last one of a key is its latest
    found.sort_by_key(|request| request.created_ms);
    let mut table = inner.table.lock();
    found
        .into_iter()
        .for_each(|request| table.insert(Arc::new(request)));
    drop(table);
    Ok(inner)
}

/// What is read often is in memory already.
const CACHE_BYTES: usize = 1024 * 1024;

impl Inner {
    /// Seals and writes these rows and removes others, in one transaction.
    fn write(&self, rows: &[(&str, Vec<u8>)], gone: &[RequestId]) -> Result<(), StoreError> {
        let transaction = self.database.begin_write().map_err(StoreError::failed)?;
        {
            let mut table = transaction
                .open_table(REQUESTS)
                .map_err(StoreError::failed)?;
            for (name, bytes) in rows {
                let sealed = self
                    .sealer
                    .seal(name, bytes.clone())
                    .map_err(StoreError::failed)?;
                table.insert(*name, &*sealed).map_err(StoreError::failed)?;
            }
            for id in gone {
                table.remove(id.as_str()).map_err(StoreError::failed)?;
            }
        }
        transaction.commit().map_err(StoreError::failed)
    }

    fn insert(&self, table: &mut Table, request: Arc<Request>) -> Result<(), StoreError> {
        let raw = serde_json::to_vec(&*request).map_err(StoreError::failed)?;
        self.write(&[(request.id.as_str(), raw)], &[])?;
        table.insert(request);
        Ok(())
    }
}

impl Store for FileStore {
    fn put(
        &self,
        request: Arc<Request>,
        latest: Option<RequestId>,
        bounds: Bounds,
    ) -> BoxFuture<'_, Result<Put, StoreError>> {
        self.with(move |inner| {
            let mut table = inner.table.lock();
            let put = table.may_put(&request, latest.as_ref(), bounds);
            if put == Put::Added {
                inner.insert(&mut table, request)?;
            }
            Ok(put)
        })
    }

    fn get(&self, id: RequestId) -> BoxFuture<'_, Result<Option<Arc<Request>>, StoreError>> {
        self.with(move |inner| Ok(inner.table.lock().get(&id)))
    }

    fn latest(&self, key: Key) -> BoxFuture<'_, Result<Option<Arc<Request>>, StoreError>> {
        self.with(move |inner| Ok(inner.table.lock().latest(&key)))
    }

    fn replace(&self, request: Arc<Request>) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.with(move |inner| {
            let mut table = inner.table.lock();
            let may = table.may_replace(&request);
            if may {
                inner.insert(&mut table, request)?;
            }
            Ok(may)
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Arc<Request>>, StoreError>> {
        self.with(|inner| Ok(inner.table.lock().list()))
    }

    fn remove_ended(&self, before_ms: u64, most: usize) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |inner| {
            let mut table = inner.table.lock();
            let outdated = table.outdated(before_ms, most);
            if !outdated.is_empty() {
                inner.write(&[], &outdated)?;
                table.remove_all(&outdated);
            }
            Ok(())
        })
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&self.0.path).finish()
    }
}
