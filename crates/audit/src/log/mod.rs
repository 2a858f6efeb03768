//! The handle of a log: a bounded queue in front of a writer thread.

mod file;
mod paths;
mod unwritten;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use callward_core::{
    AuditLevel, AuditRule, Caller, Delivery, ErrorKind, Inbound, InvalidConfig, ToolError,
};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::event::{Event, MAX_NAME, RefusedCall};
use crate::{AuditConfig, OnFailure, OnFull, time};

pub(crate) use self::paths::{all_closed, before_extension, number_in};

use self::file::LogFile;
use self::unwritten::{Bound, Unwritten};
use self::writer::{Logs, Message, Writer};

/// A log with its own writer thread. Clones share it.
///
/// Call [`close`](Self::close) before the process ends: it writes the queued records.
#[derive(Clone)]
pub struct AuditLog(Arc<Shared>);

struct Shared {
    to_writer: Mutex<Option<Sender<Message>>>,
    permits: Arc<Semaphore>,
    bound: Bound,
    config: AuditConfig,
    state: Arc<Mutex<State>>,
}

/// What the handles and the writer share.
#[derive(Debug, Default)]
struct State {
    stats: AuditStats,
    unwritten: Unwritten,
    /// Suppressed refusals that the log does not state yet.
    unstated: u64,
    /// Why a file cannot be written.
    why: String,
    /// The beginning of the current second of refusals, and their number.
    refusals: Option<(Instant, u32)>,
}

/// The counters of a log since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditStats {
    /// Records that were written.
    pub written: u64,
    /// Records that were dropped, because the queue was full.
    pub dropped: u64,
    /// Records that were lost, because a file could not be written.
    pub failed: u64,
    /// Calls that were refused, because the log could not be written.
    pub refused_calls: u64,
    /// Refusals of unknown tools that were counted only, because of their rate.
    pub suppressed: u64,
    /// `true` while a file cannot be written.
    pub is_failing: bool,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting is invalid.
    #[error("the settings of the audit log are invalid")]
    Config(#[from] InvalidConfig),
    /// A file cannot be read or written.
    #[error("the audit log {} cannot be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
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
        config.validate()?;
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        let open = |path: &Path| LogFile::open(path, config).map_err(fault(path));
        let (path, separate) = (&config.path, &config.open_world_path);
        let logs = Logs {
            main: open(path)?,
            open_world: (separate != path).then(|| open(separate)).transpose()?,
        };
        Self::start(config, logs).map_err(fault(path))
    }

    /// Starts the writer thread.
    fn start(config: &AuditConfig, logs: Logs) -> io::Result<Self> {
        let (log, messages) = Self::queue(config);
        let writer = Writer::new(logs, config, log.0.state.clone());
        std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&messages))?;
        Ok(log)
    }

    /// Creates a log without its writer thread.
    fn queue(config: &AuditConfig) -> (Self, Receiver<Message>) {
        let (to_writer, messages) = mpsc::channel();
        let log = Self(Arc::new(Shared {
            to_writer: Mutex::new(Some(to_writer)),
            permits: Arc::new(Semaphore::new(config.queue.min(Semaphore::MAX_PERMITS))),
            bound: Bound::of(config),
            config: config.clone(),
            state: Arc::default(),
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
        if !self.0.state.lock().admits_refusal() {
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
        drop(self.send(event, self.try_permits(1)));
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        self.0.state.lock().stats
    }

    /// Returns the path of the log, and that of the log of open-world calls.
    #[must_use]
    pub fn paths(&self) -> [&Path; 2] {
        [&self.0.config.path, &self.0.config.open_world_path]
    }

    /// Waits until all queued records are written, and synced if syncing is configured.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.post(Message::Flush(done));
        // a writer that ended has written all it could
        let _ = written.await;
    }

    /// Writes the queued records and the closing record, and ends the writer. Later calls behave as
    /// if the log could not be written.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.post(Message::End(done));
        self.0.to_writer.lock().take();
        self.0.permits.close();
        let _ = closed.await;
    }

    /// Returns `true` if calls wait for a permit before they are sent.
    pub(crate) fn blocks(&self) -> bool {
        self.0.config.on_full == OnFull::Block
    }

    /// Takes permits if they are available.
    pub(crate) fn try_permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        let permits = self.0.permits.clone();
        permits.try_acquire_many_owned(self.up_to_all(count)).ok()
    }

    /// Waits for permits; `None` if the log is closed.
    pub(crate) async fn permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        let permits = self.0.permits.clone();
        permits.acquire_many_owned(self.up_to_all(count)).await.ok()
    }

    fn up_to_all(&self, permits: u32) -> u32 {
        // the settings are valid
        permits.min(u32::try_from(self.0.config.queue).unwrap_or(u32::MAX))
    }

    /// Checks whether a call may be sent although its record may not be written.
    pub(crate) fn admit(&self, rule: AuditRule) -> Result<(), ToolError> {
        let mut state = self.0.state.lock();
        let is_needed =
            self.0.config.on_failure == OnFailure::FailClosed && rule.level == AuditLevel::Full;
        if !is_needed || !state.stats.is_failing {
            return Ok(());
        }
        state.stats.refused_calls += 1;
        let text = format!(
            "the call needs an audit record, and the log cannot be written: {}; writing is retried \
             each second",
            state.why
        );
        Err(ToolError::new(ErrorKind::Internal, Delivery::NotSent, text))
    }

    /// Queues a record, or drops it without a permit. The answer waits for the returned receiver.
    pub(crate) fn send(
        &self,
        event: Event,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<oneshot::Receiver<()>> {
        let to_writer = self.0.to_writer.lock();
        // held until the record is counted: the writer may be faster
        let mut state = self.0.state.lock();
        let waits = permit.is_some() && state.unwritten.reaches(self.0.bound);
        let (done, written) = waits.then(oneshot::channel).unzip();
        let sent = permit
            .zip(to_writer.as_ref())
            .is_some_and(|(permit, to_writer)| {
                let message = Message::Event(event, permit, done);
                to_writer.send(message).is_ok()
            });
        match sent {
            true => state.unwritten.add(),
            false => state.stats.dropped += 1,
        }
        written
    }

    fn post(&self, message: Message) {
        if let Some(to_writer) = &*self.0.to_writer.lock() {
            // without a writer the message is dropped, which ends the wait for it
            let _ = to_writer.send(message);
        }
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

impl State {
    fn admits_refusal(&mut self) -> bool {
        let now = Instant::now();
        let (since, records) = self.refusals.get_or_insert((now, 0));
        if now.duration_since(*since).as_secs() >= 1 {
            (*since, *records) = (now, 0);
        }
        *records = records.saturating_add(1);
        let admits = *records <= AuditLog::MAX_REFUSALS;
        self.stats.suppressed += u64::from(!admits);
        self.unstated += u64::from(!admits);
        admits
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("paths", &self.paths())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
