//! The handle of a log: a bounded queue in front of a writer thread.

mod file;
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

use crate::event::{Called, Event, MAX_NAME, RefusedCall};
use crate::{AuditConfig, AuditStats, OnFailure, OnFull, time};

pub(crate) use self::paths::{Paths, number_in};

use self::file::LogFile;
use self::unwritten::{Bound, Unwritten};
use self::writer::{Logs, Message};

/// A log with its own writer thread. Clones share it.
///
/// Call [`close`](Self::close) before the process ends: it writes the queued records.
#[derive(Clone)]
pub struct AuditLog(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    to_writer: Mutex<Option<Sender<Message>>>,
    permits: Arc<Semaphore>,
    capacity: u32,
    on_full: OnFull,
    on_failure: OnFailure,
    bound: Bound,
    path: PathBuf,
    open_world_path: PathBuf,
    pub(crate) counts: Arc<Counts>,
    refusals: Mutex<RefusalRate>,
}

/// Counters of records.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) unwritten: Mutex<Unwritten>,
    pub(crate) written: AtomicU64,
    dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
    waited: AtomicU64,
    refused_calls: AtomicU64,
    pub(crate) suppressed: AtomicU64,
    /// Suppressed refusals that the log does not state yet.
    pub(crate) unstated: AtomicU64,
    /// A file cannot be written.
    pub(crate) is_failing: AtomicBool,
    pub(crate) why: Mutex<String>,
}

/// The rate of refusals.
struct RefusalRate {
    since: Instant,
    records: u32,
}

/// Why a log cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting is invalid.
    Config(InvalidConfig),
    /// A file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(_) => f.write_str("the settings of the audit log are invalid"),
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
    /// The maximum number of recorded refusals of unknown tools per second: any client can cause
    /// them at any rate. The log states how many more there were.
    pub const MAX_REFUSALS: u32 = 50;

    /// Opens or creates the files, and starts the writer thread.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if a setting is invalid, or a file cannot be written, is locked by another
    /// process, or has another key.
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

    /// Creates a log without its writer thread.
    fn queue(config: &AuditConfig) -> (Self, std::sync::mpsc::Receiver<Message>) {
        let (to_writer, messages) = std::sync::mpsc::channel();
        // the settings are valid
        let capacity = u32::try_from(config.queue).unwrap_or(u32::MAX);
        let log = Self(Arc::new(Shared {
            to_writer: Mutex::new(Some(to_writer)),
            permits: Arc::new(Semaphore::new(config.queue.min(Semaphore::MAX_PERMITS))),
            capacity,
            on_full: config.on_full,
            on_failure: config.on_failure,
            bound: Bound::of(config),
            path: config.path.clone(),
            open_world_path: config.open_world_path.clone(),
            counts: Arc::default(),
            refusals: Mutex::new(RefusalRate {
                since: Instant::now(),
                records: 0,
            }),
        }));
        (log, messages)
    }

    /// Records the refusal of a call that names an unknown tool or cannot be parsed.
    ///
    /// Never waits: with a full queue the record is dropped and counted, and at most
    /// [`MAX_REFUSALS`](Self::MAX_REFUSALS) per second are written.
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
        // one character more than a record shows, so that it marks the cut
        let tool = tool.chars().take(MAX_NAME + 1).collect();
        let event = Event::Refused(Box::new(RefusedCall {
            at: time::now(),
            tool,
            caller: caller.cloned(),
            inbound: inbound.cloned(),
            error: error.clone(),
        }));
        match self.try_permits(1) {
            Some(permit) => drop(shared.send(event, permit)),
            None => shared.drop_one(),
        }
    }

    /// Returns the counters.
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

    /// Waits until all queued records are written, and synced if syncing is configured.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.0.post(Message::Flush(done));
        // a writer that ended has written all it could
        let _ = written.await;
    }

    /// Writes the queued records and the closing record, and ends the writer. Later calls behave as
    /// if the log could not be written.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.0.post(Message::End(done));
        self.0.to_writer.lock().take();
        self.0.permits.close();
        let _ = closed.await;
    }

    /// Returns `true` if calls wait for a permit before they are sent.
    pub(crate) fn blocks(&self) -> bool {
        self.0.on_full == OnFull::Block
    }

    /// Takes permits if they are available.
    pub(crate) fn try_permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        let count = count.min(self.0.capacity);
        self.0.permits.clone().try_acquire_many_owned(count).ok()
    }

    /// Waits for permits; `None` if the log is closed.
    pub(crate) async fn permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        self.0.counts.waited.fetch_add(1, Ordering::Relaxed);
        let count = count.min(self.0.capacity);
        self.0.permits.clone().acquire_many_owned(count).await.ok()
    }

    /// Checks whether a call may be sent although its record may not be written.
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
                "the call needs an audit record, and the log cannot be written: {why}; writing is \
                 retried each second"
            ),
        ))
    }

    /// Queues the record of a call, or drops it without a permit. The answer waits for the returned
    /// receiver.
    pub(crate) fn send(
        &self,
        called: Box<Called>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<oneshot::Receiver<()>> {
        if let Some(permit) = permit {
            return self.0.send(Event::Call(called), permit);
        }
        self.0.drop_one();
        None
    }

    /// The error of a call that waited for a permit until its deadline.
    pub(crate) fn queue_full() -> ToolError {
        ToolError::new(
            ErrorKind::DeadlineExceeded,
            Delivery::NotSent,
            "the call needs an audit record, and the queue of the log was full until the deadline",
        )
    }
}

impl Shared {
    fn post(&self, message: Message) {
        if let Some(to_writer) = &*self.to_writer.lock() {
            // without a writer the message is dropped, which ends the wait for it
            let _ = to_writer.send(message);
        }
    }

    fn send(&self, event: Event, permit: OwnedSemaphorePermit) -> Option<oneshot::Receiver<()>> {
        let to_writer = self.to_writer.lock();
        // held until the record is counted: the writer may be faster
        let mut unwritten = self.counts.unwritten.lock();
        let waits = unwritten.reaches(self.bound);
        let (done, written) = waits.then(oneshot::channel).unzip();
        let message = Message::Event {
            event,
            permit,
            done,
        };
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
        let mut rate = self.refusals.lock();
        let now = Instant::now();
        if now.duration_since(rate.since).as_secs() >= 1 {
            *rate = RefusalRate {
                since: now,
                records: 0,
            };
        }
        rate.records = rate.records.saturating_add(1);
        if rate.records <= AuditLog::MAX_REFUSALS {
            return true;
        }
        self.counts.suppressed.fetch_add(1, Ordering::Relaxed);
        self.counts.unstated.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests;
