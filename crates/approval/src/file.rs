//! The file of a store.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::memory::{Local, LocalStore};
use crate::seal::{Sealer, private};
use crate::table::Table;
use crate::{Grant, Request, RequestId, StoreError};

/// Requests by name, sealed.
const REQUESTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("requests");
/// Grants by name, sealed. A file that an older version wrote has none.
const GRANTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("grants");
/// The first row, without a request, by which a wrong key is noticed.
const CHECK: &str = "";
/// What is read often is in memory already.
const CACHE_BYTES: usize = 1024 * 1024;

/// A name, and what is sealed under it.
type Row = (String, Vec<u8>);

type Written = Result<(), crate::error::Cause>;

pub(crate) struct File {
    database: Database,
    sealer: Sealer,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("File")
    }
}

impl LocalStore {
    /// Opens a store in a file, or makes it, and its key if both are new. One process has it open
    /// at a time.
    ///
    /// Each change is on disk before its future ends. The file and its key, a file of the same name
    /// with the extension `key`, are for this user alone (mode 0600); what is written is sealed
    /// with ChaCha20-Poly1305, so that neither arguments can be read nor states be changed without
    /// the key. All requests are in memory as well.
    ///
    /// # Errors
    ///
    /// [`StoreError`] says what is wrong with the file or its key, and what to do.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let shown = path.display().to_string();
        let opened = spawn_blocking(move || open(&path)).await;
        // the library may panic at a file that was damaged with care
        let unreadable = |_| StoreError::damaged(&shown, &"it cannot be read");
        Ok(Self(Arc::new(opened.map_err(unreadable)??)))
    }
}

fn open(path: &Path) -> Result<Local, StoreError> {
    let (key, shown) = (path.with_extension("key"), path.display().to_string());
    let wrong_key = || StoreError::WrongKey {
        path: shown.clone(),
        key: key.display().to_string(),
    };
    let is_new = fs::metadata(path).map_or(0, |file| file.len()) == 0;
    let sealer = Sealer::open(&key, is_new).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => wrong_key(),
        _ => StoreError::failed(error),
    })?;
    drop(private(path).map_err(StoreError::failed)?);
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
        other => StoreError::damaged(&shown, &other),
    })?;
    let file = File { database, sealer };
    let mut rows = file.rows(REQUESTS);
    // a new one, also if its first process was killed before it wrote
    if matches!(rows, Err(redb::Error::TableDoesNotExist(_))) {
        file.write(&[], &[], &[])?;
        rows = file.rows(REQUESTS);
    }
    let mut rows = rows
        .map_err(|error| StoreError::damaged(&shown, &error))?
        .into_iter();
    let check = rows.next().filter(|(name, _)| name == CHECK);
    let (_, check) = check.ok_or_else(|| StoreError::damaged(&shown, &"a part is missing"))?;
    file.sealer.unseal(CHECK, &check).ok_or_else(wrong_key)?;
    let damaged = |name: String| StoreError::damaged(&shown, &name);
    let mut found = rows
        .map(|(name, sealed)| {
            file.read::<Request>(&name, &sealed)
                .ok_or_else(|| damaged(name))
        })
        .collect::<Result<Vec<_>, _>>()?;
    // the last one of a key is its latest
    found.sort_by_key(|request| request.created_ms);
    let mut table = Table::default();
    found
        .into_iter()
        .for_each(|request| table.insert(Arc::new(request)));
    let grants = match file.rows(GRANTS) {
        Err(redb::Error::TableDoesNotExist(_)) => Ok(Vec::new()),
        rows => rows.map_err(|error| StoreError::damaged(&shown, &error)),
    };
    for (name, sealed) in grants? {
        let grant = file.read::<Grant>(&of_grant(&name), &sealed);
        let grant = grant.ok_or_else(|| damaged(name))?;
        table.grants.insert(grant.id.clone(), Arc::new(grant));
    }
    Ok(Local {
        table: table.into(),
        file: Some(file),
    })
}

/// Returns the name for which a grant is sealed: its row is no request's.
fn of_grant(id: &str) -> String {
    format!("grant {id}")
}

impl File {
    /// Returns all rows of a table, by name.
    fn rows(&self, of: TableDefinition<'_, &str, &[u8]>) -> Result<Vec<Row>, redb::Error> {
        let table = self.database.begin_read()?.open_table(of)?;
        let rows = table.iter()?.map(|row| {
            let (name, sealed) = row?;
            Ok((name.value().to_owned(), sealed.value().to_owned()))
        });
        rows.collect()
    }

    fn read<T: DeserializeOwned>(&self, name: &str, sealed: &[u8]) -> Option<T> {
        serde_json::from_slice(&self.sealer.unseal(name, sealed)?).ok()
    }

    /// Seals and writes requests and grants, and removes others, in one transaction. Of nothing, it
    /// is the first row.
    pub(crate) fn write(
        &self,
        new: &[&Request],
        grants: &[&Grant],
        gone: &[RequestId],
    ) -> Result<(), StoreError> {
        let written = self.try_write(new, grants, gone);
        written.map_err(StoreError::Failed)
    }

    fn try_write(&self, new: &[&Request], grants: &[&Grant], gone: &[RequestId]) -> Written {
        let transaction = self.database.begin_write()?;
        let mut table = transaction.open_table(REQUESTS)?;
        if new.is_empty() && grants.is_empty() && gone.is_empty() {
            table.insert(CHECK, &*self.sealer.seal(CHECK, Vec::new())?)?;
        }
        for request in new {
            let name = request.id.as_str();
            let sealed = self.sealer.seal(name, serde_json::to_vec(request)?)?;
            table.insert(name, &*sealed)?;
        }
        for id in gone {
            table.remove(id.as_str())?;
        }
        drop(table);
        if !grants.is_empty() || !gone.is_empty() {
            let mut table = transaction.open_table(GRANTS)?;
            for grant in grants {
                let (id, written) = (grant.id.as_str(), serde_json::to_vec(grant)?);
                table.insert(id, &*self.sealer.seal(&of_grant(id), written)?)?;
            }
            for id in gone {
                table.remove(id.as_str())?;
            }
        }
        Ok(transaction.commit()?)
    }
}
