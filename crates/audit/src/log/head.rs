//! The small file that says where a log ends.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::chain::{Hash, Link, Seal};

/// Where a log ended when somebody looked last: a cut of what stands before that shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) log: String,
    pub(crate) file: u64,
    /// The last record, and its hash.
    pub(crate) seq: u64,
    pub(crate) hash: String,
    /// The hash of what stands before, made as those of the log are.
    #[serde(default)]
    check: String,
}

impl Head {
    /// States the end of a chain; nothing before its first line.
    pub(crate) fn new(log: &str, file: u64, link: Link, seal: &Seal) -> Option<Self> {
        let mut head = Self {
            log: log.to_owned(),
            file,
            seq: link.seq.checked_sub(1)?,
            hash: link.prev.to_string(),
            check: String::new(),
        };
        head.check = head.checked(seal);
        Some(head)
    }

    fn checked(&self, seal: &Seal) -> String {
        let said = format!("{} {} {} {}", self.log, self.file, self.seq, self.hash);
        seal.hash(said.as_bytes()).to_string()
    }

    /// Returns the record it names.
    pub(crate) fn watched(&self) -> Option<(u64, Hash)> {
        Some((self.seq, Hash::read(self.hash.as_bytes())?))
    }

    /// Reads the file; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or was not written by us: [`io::ErrorKind::InvalidData`].
    pub(crate) fn read(path: &Path, seal: &Seal) -> io::Result<Option<Self>> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let odd = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let head: Self = serde_json::from_slice(&text)
            .map_err(|error| odd(format!("the head cannot be read: {error}")))?;
        if head.checked(seal) != head.check {
            return Err(odd(
                "the head was edited, or made with another key".to_owned()
            ));
        }
        Ok(Some(head))
    }

    /// Puts the file in the place of the one before, so that there is always a whole one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(&self, path: &Path, to_disk: bool) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        let mut file =
            private(OpenOptions::new().write(true).create(true).truncate(true)).open(&new)?;
        file.write_all(&text)?;
        if to_disk {
            file.sync_data()?;
        }
        std::fs::rename(&new, path)
    }
}

/// A new file can be read by its owner only.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        options.mode(0o600);
    }
    options
}
