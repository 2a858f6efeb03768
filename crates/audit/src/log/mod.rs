//! The log as calls see it: a place in a queue, and a thread behind it.

mod end;
mod file;
mod head;
mod paths;
mod unwritten;
mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use callward_core::{
    AuditLevel, AuditRule, Caller, Delivery, ErrorKind, Inbound, InvalidConfig, ToolError,
};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::event::{Called, Event, RefusedCall};
use crate::{AuditConfig, AuditStats, OnFailure, OnFull, time};

pub(crate) use self::head::Head;
pub(crate) use self::paths::{Paths, number_in};

use self::file::LogFile;
use self::unwritten::{Bound, Unwritten};
use self::writer::{Logs, Message};

/// A log that is written by a thread of its own. Cloning copies a pointer.
///
/// [`close`](Self::close) it before the process ends: what still waits is written then.
#[derive(Clone)]
pub struct AuditLog(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    to_writer: Mutex<Option<Sender<Message>>>,
    places: Arc<Semaphore>,
    capacity: u32,
    on_full: OnFull,
    on_failure: OnFailure,
    bound: Bound,
    path: PathBuf,
    open_world_path: PathBuf,
    pub(crate) counts: Arc<Counts>,
    flood: Mutex<Flood>,
}

/// What became of records, counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) unwritten: Mutex<Unwritten>,
    pub(crate) written: AtomicU64,
    dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
    waited: AtomicU64,
    refused_calls: AtomicU64,
    pub(crate) suppressed: AtomicU64,
    /// Of those, how many the log does not tell of yet.
    pub(crate) untold: AtomicU64,
    /// A file cannot be written.
    pub(crate) is_failing: AtomicBool,
    pub(crate) why: Mutex<String>,
}

/// How many refusals were written lately.
struct Flood {
    since: Instant,
    records: u32,
}

/// Why a log cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting makes no sense.
    Config(InvalidConfig),
    /// A file cannot be read or written.
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(_) => f.write_str("the settings of the audit log make no sense"),
            Self::Io { path, .. } => {
                write!(f, "the audit log {} cannot be written", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Io { source, .. } => Some(source),
        }
    }
}

impl AuditLog {
    /// So many refusals of calls that name no tool are written in a second; the log says how many
    /// more there were. Anybody can make such calls, as fast as they like.
    pub const MOST_REFUSALS: u32 = 50;

    /// Opens the files, or begins them, and starts the thread that writes.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if a setting makes no sense, or a file cannot be written, is written by another
    /// process, or was made with another key.
    pub fn open(config: &AuditConfig) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        let open = |path: &PathBuf| {
            LogFile::open(path, config).map_err(|source| OpenError::Io {
                path: path.clone(),
                source,
            })
        };
        let logs = Logs {
            main: open(&config.path)?,
            open_world: match config.open_world_path == config.path {
                true => None,
                false => Some(open(&config.open_world_path)?),
            },
        };
        let (log, messages) = Self::queue(config);
        let (counts, config) = (log.0.counts.clone(), config.clone());
        std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer::run(&messages, logs, &config, &counts))
            .map_err(|source| OpenError::Io {
                path: log.0.path.clone(),
                source,
            })?;
        Ok(log)
    }

    /// Makes a log without a thread that writes.
    fn queue(config: &AuditConfig) -> (Self, std::sync::mpsc::Receiver<Message>) {
        let (to_writer, messages) = std::sync::mpsc::channel();
        // the settings were checked
        let capacity = u32::try_from(config.queue).unwrap_or(u32::MAX);
        let log = Self(Arc::new(Shared {
            to_writer: Mutex::new(Some(to_writer)),
            places: Arc::new(Semaphore::new(config.queue.min(Semaphore::MAX_PERMITS))),
            capacity,
            on_full: config.on_full,
            on_failure: config.on_failure,
            bound: Bound::of(config),
            path: config.path.clone(),
            open_world_path: config.open_world_path.clone(),
            counts: Arc::default(),
            flood: Mutex::new(Flood {
                since: Instant::now(),
                records: 0,
            }),
        }));
        (log, messages)
    }

    /// Writes down a call that became none: it named no tool there is, or could not be read.
    /// `inbound` says which client sent it, where that is known. Never waits: where there is no room the record is dropped and counted, and of a flood
    /// [`MOST_REFUSALS`](Self::MOST_REFUSALS) a second are written.
    pub fn note_refused(
        &self,
        tool: &str,
        caller: Option<&Arc<Caller>>,
        inbound: Option<&Arc<Inbound>>,
        error: &ToolError,
    ) {
        let shared = &self.0;
        if !shared.admits_refusal() {
            return;
        }
        // as much as a record shows, and a character that says there is more
        let tool = tool.chars().take(LONGEST_TOLD).collect();
        let event = Event::Refused(Box::new(RefusedCall {
            at: time::now(),
            tool,
            caller: caller.cloned(),
            inbound: inbound.cloned(),
            error: error.clone(),
        }));
        match self.try_place(1) {
            Some(place) => drop(shared.send(event, place)),
            None => shared.drop_one(),
        }
    }

    /// Returns what became of records so far.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        let counts = &self.0.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AuditStats {
            written: read(&counts.written),
            dropped: read(&counts.dropped),
            failed: read(&counts.failed),
            waited: read(&counts.waited),
            refused_calls: read(&counts.refused_calls),
            suppressed: read(&counts.suppressed),
            is_failing: counts.is_failing.load(Ordering::Relaxed),
        }
    }

    /// Returns the path of the log, and that of the log of open-world calls.
    #[must_use]
    pub fn paths(&self) -> [&std::path::Path; 2] {
        [&self.0.path, &self.0.open_world_path]
    }

    /// Waits until all that happened up to now is written, and brought to the disk if it ever is.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.0.tell(Message::Flush(done));
        // a writer that is gone has written what it could
        let _ = written.await;
    }

    /// Writes what still waits, says in the log that it ends in good order, and lets it go. Calls
    /// that come after it find no log: they are refused or go on as if it could not be written.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.0.tell(Message::End(done));
        self.0.to_writer.lock().take();
        self.0.places.close();
        let _ = closed.await;
    }

    /// Says whether a call waits for a place before it is sent.
    pub(crate) fn blocks(&self) -> bool {
        self.0.on_full == OnFull::Block
    }

    /// Takes places if there are so many.
    pub(crate) fn try_place(&self, places: u32) -> Option<OwnedSemaphorePermit> {
        let places = places.min(self.0.capacity);
        self.0.places.clone().try_acquire_many_owned(places).ok()
    }

    /// Waits for places; nothing if the log is closed.
    pub(crate) async fn place(&self, places: u32) -> Option<OwnedSemaphorePermit> {
        self.0.counts.waited.fetch_add(1, Ordering::Relaxed);
        let places = places.min(self.0.capacity);
        self.0.places.clone().acquire_many_owned(places).await.ok()
    }

    /// Says whether a call may be sent whose record may not be written.
    pub(crate) fn admit(&self, rule: AuditRule) -> Result<(), ToolError> {
        if !self.0.counts.is_failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.0.on_failure == OnFailure::FailOpen || rule.level != AuditLevel::Full {
            return Ok(());
        }
        self.0.counts.refused_calls.fetch_add(1, Ordering::Relaxed);
        let why = self.0.counts.why.lock().clone();
        Err(ToolError::new(
            ErrorKind::Internal,
            Delivery::NotSent,
            format!(
                "the call has to leave an audit record, and the log cannot be written: {why}; it is \
                 tried again each second"
            ),
        ))
    }

    /// Hands over a call that ended, or drops it where it has no place. What is returned is waited for
    /// by who is answered.
    pub(crate) fn send(
        &self,
        called: Box<Called>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Option<oneshot::Receiver<()>> {
        if let Some(place) = place {
            return self.0.send(Event::Call(called), place);
        }
        self.0.drop_one();
        None
    }

    /// Says that a call waited for room until its deadline.
    pub(crate) fn no_room() -> ToolError {
        ToolError::new(
            ErrorKind::DeadlineExceeded,
            Delivery::NotSent,
            "the call has to leave an audit record, and the log had no room for it until the deadline",
        )
    }
}

impl Shared {
    fn tell(&self, message: Message) {
        if let Some(to_writer) = &*self.to_writer.lock() {
            // a writer that is gone drops the message, and whoever waits is told by that
            let _ = to_writer.send(message);
        }
    }

    fn send(&self, event: Event, place: OwnedSemaphorePermit) -> Option<oneshot::Receiver<()>> {
        let to_writer = self.to_writer.lock();
        // held until the record counts: the writer may be faster
        let mut unwritten = self.counts.unwritten.lock();
        let waits = unwritten.reaches(self.bound);
        let (done, written) = waits.then(oneshot::channel).unzip();
        let message = Message::Event { event, place, done };
        let sent = to_writer
            .as_ref()
            .is_some_and(|to_writer| to_writer.send(message).is_ok());
        match sent {
            true => unwritten.add(),
            false => self.drop_one(),
        }
        written
    }

    fn drop_one(&self) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn admits_refusal(&self) -> bool {
        let mut flood = self.flood.lock();
        let now = Instant::now();
        if now.duration_since(flood.since).as_secs() >= 1 {
            *flood = Flood {
                since: now,
                records: 0,
            };
        }
        flood.records = flood.records.saturating_add(1);
        if flood.records <= AuditLog::MOST_REFUSALS {
            return true;
        }
        self.counts.suppressed.fetch_add(1, Ordering::Relaxed);
        self.counts.untold.fetch_add(1, Ordering::Relaxed);
        false
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("path", &self.0.path)
            .field("open_world_path", &self.0.open_world_path)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A name that nobody offers is kept in so many characters.
const LONGEST_TOLD: usize = 201;

#[cfg(test)]
mod tests;
