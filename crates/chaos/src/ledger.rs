//! The counts of executions.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;

/// The executions of each call, by the number in its arguments (`"call"`).
///
/// Clones share the counts, so that servers of one replica set count together.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<HashMap<u64, Count>>,
    file: Option<Mutex<File>>,
}

/// The counts of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Attempts to send it, including those to a server that is down.
    pub tried: u64,
    /// How often a server received it, in whole or in part.
    pub seen: u64,
    /// How often it took effect.
    pub executions: u64,
}

impl Count {
    /// Adds one to what an entry counts, and returns it.
    fn add(&mut self, word: &str) -> u64 {
        let number = match word {
            TRIED => &mut self.tried,
            SEEN => &mut self.seen,
            _ => &mut self.executions,
        };
        *number += 1;
        *number
    }
}

impl Ledger {
    /// Creates an empty ledger in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a ledger that also appends each entry to a file, so that it outlives the process.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written.
    pub fn in_file(path: &Path) -> io::Result<Self> {
        let counts = Self::counts(&[path])?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let file = Some(Mutex::new(file));
        Ok(Self(Arc::new(Inner { counts, file })))
    }

    /// Reads the sum of several files; a missing file is empty.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn read(paths: &[impl AsRef<Path>]) -> io::Result<Self> {
        let counts = Self::counts(paths)?;
        Ok(Self(Arc::new(Inner { counts, file: None })))
    }

    fn counts(paths: &[impl AsRef<Path>]) -> io::Result<Mutex<HashMap<u64, Count>>> {
        let mut counts: HashMap<_, Count> = HashMap::new();
        for path in paths {
            let text = match std::fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in text.lines() {
                let (word, call) = line.split_once(' ').unwrap_or_default();
                let Ok(call) = call.parse() else {
                    let text = format!("{}: {line:?} is not an entry", path.as_ref().display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                };
                counts.entry(call).or_default().add(word);
            }
        }
        Ok(Mutex::new(counts))
    }

    /// Returns the counts of one call.
    #[must_use]
    pub fn of(&self, call: u64) -> Count {
        self.0.counts.lock().get(&call).copied().unwrap_or_default()
    }

    /// Returns the sum over all calls.
    #[must_use]
    pub fn total(&self) -> Count {
        let counts = self.0.counts.lock();
        Count {
            tried: counts.values().map(|count| count.tried).sum(),
            seen: counts.values().map(|count| count.seen).sum(),
            executions: counts.values().map(|count| count.executions).sum(),
        }
    }

    /// Counts an attempt to send a call, and returns the number of attempts.
    pub(crate) fn try_send(&self, call: u64) -> u64 {
        self.count(TRIED, call)
    }

    /// Counts that a server received a call.
    pub(crate) fn see(&self, call: u64) {
        self.count(SEEN, call);
    }

    /// Counts an execution.
    pub(crate) fn execute(&self, call: u64) {
        self.count(RAN, call);
    }

    fn count(&self, word: &str, call: u64) -> u64 {
        self.write(word, call);
        self.0.counts.lock().entry(call).or_default().add(word)
    }

    /// Writes an entry at once. A lost entry would hide a duplicate, so a failure aborts.
    fn write(&self, word: &str, call: u64) {
        let Some(file) = &self.0.file else { return };
        let entry = format!("{word} {call}\n");
        if file.lock().write_all(entry.as_bytes()).is_err() {
            std::process::abort();
        }
    }
}

/// Returns the identity in the arguments of a call.
#[must_use]
pub fn identity(arguments: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Arguments {
        call: u64,
    }
    serde_json::from_slice(arguments)
        .ok()
        .map(|Arguments { call }| call)
}

const TRIED: &str = "tried";
const SEEN: &str = "seen";
const RAN: &str = "ran";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_counts() {
        let ledger = Ledger::new();
        let other = ledger.clone();
        ledger.see(1);
        other.see(1);
        other.execute(1);
        other.execute(2);
        let one = ledger.of(1);
        assert_eq!((one.seen, one.executions), (2, 1));
        assert_eq!(ledger.total().executions, 2);
        assert_eq!(ledger.of(3), Count::default());
    }

    #[test]
    fn a_ledger_in_a_file_is_read_and_continued() {
        let path = std::env::temp_dir().join(format!("callward-ledger-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Ledger::in_file(&path).unwrap().execute(7);
        let second = Ledger::in_file(&path).unwrap();
        assert_eq!(second.try_send(7), 1);
        second.see(7);
        second.execute(7);
        let read = Ledger::read(&[&path]).unwrap().of(7);
        assert_eq!((read.seen, read.executions), (1, 2));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(Ledger::read(&[&path]).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_identity_comes_from_the_arguments() {
        assert_eq!(identity(br#"{"a":1,"call":17}"#), Some(17));
        assert_eq!(identity(b"{}"), None);
        assert_eq!(identity(b"[]"), None);
    }
}
