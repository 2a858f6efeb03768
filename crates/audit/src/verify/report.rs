//! What was found in a log.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::log::Paths;
use crate::scan::Scan;

/// What was found in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The path that was asked for.
    pub log: PathBuf,
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines that are as they were written, those of the log about itself included.
    pub records: u64,
    /// Of those, calls.
    pub calls: u64,
    /// Of those, calls that named no tool there is.
    pub refused: u64,
    /// The number and time of the first record that was read.
    pub first: Option<(u64, String)>,
    /// The number and time of the last one.
    pub last: Option<(u64, String)>,
    /// Lines that broke off when a process stopped, and were repaired.
    pub repaired: u64,
    /// Calls without a record, because the file could not be written; the log says so itself.
    pub lost: u64,
    /// Refusals without a record, because there were too many; the log says so itself.
    pub suppressed: u64,
    /// Whether the process that wrote last closed the log; `None` for closed files alone. One that is not
    /// closed is being written, or its process was killed and may have answered calls that have no record.
    pub closed: Option<bool>,
    /// Processes before that one that ended without closing the log.
    pub unclosed: u64,
    /// Records behind the one that the head names. A cut among them would not show.
    pub after_head: u64,
    /// How much of a line stands at the end.
    pub torn_bytes: u64,
    /// The first thing that is wrong.
    pub fault: Option<Fault>,
    /// What is no fault, and worth knowing.
    pub notes: Vec<String>,
}

/// Something wrong with a log: where, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// In which file.
    pub file: PathBuf,
    /// In which line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// From which byte on, from 0.
    pub byte: u64,
    /// What is wrong.
    pub what: String,
}

impl Fault {
    pub(super) fn new(file: &Path, line: u64, byte: u64, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            byte,
            what: what.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ", line {}, byte {}", self.line, self.byte)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl Report {
    pub(super) fn new(log: &Path) -> Self {
        Self {
            log: log.to_owned(),
            files: 0,
            bytes: 0,
            records: 0,
            calls: 0,
            refused: 0,
            first: None,
            last: None,
            repaired: 0,
            lost: 0,
            suppressed: 0,
            closed: None,
            unclosed: 0,
            after_head: 0,
            torn_bytes: 0,
            fault: None,
            notes: Vec::new(),
        }
    }

    /// Says whether the log is whole.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.fault.is_none()
    }

    pub(super) fn take(&mut self, scan: &Scan<'_>) {
        let totals = &scan.totals;
        let stamp = |stamp: &Option<crate::scan::Stamp>| {
            let stamp = stamp.as_ref()?;
            Some((stamp.seq, stamp.time.clone()))
        };
        self.records = totals.records;
        self.calls = totals.calls;
        self.refused = totals.refused;
        self.repaired = totals.repaired;
        self.lost = totals.lost;
        self.suppressed = totals.suppressed;
        self.unclosed = totals.unclosed;
        self.first = stamp(&totals.first);
        self.last = stamp(&totals.last);
    }

    pub(super) fn fault_of_head(&mut self, paths: &Paths, what: String) {
        self.fault
            .get_or_insert_with(|| Fault::new(&paths.head, 0, 0, what));
    }

    pub(super) fn fault_of_file(&mut self, file: Option<&PathBuf>, what: &str) {
        let file = file.cloned().unwrap_or_else(|| self.log.clone());
        self.fault
            .get_or_insert_with(|| Fault::new(&file, 0, 0, what));
    }
}
