//! The handle of a log: a bounded queue in front of a writer thread.

mod file;
mod paths;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use callward_core::{AuditLevel, AuditRule, Caller, Delivery, ErrorKind, Inbound, Tool, ToolError};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::chain::Seal;
use crate::event::{self, Event, Recorder};
use crate::{AuditConfig, Fsync, OnFailure, OnFull, time};

pub(crate) use self::paths::{all_closed, before_extension, number_in};

use self::file::LogFile;
use self::writer::{Message, Writer};

/// A log with its own writer thread. Clones share it.
///
/// Call [`close`](Self::close) before the process ends: it writes the queued records.
#[derive(Debug, Clone)]
pub struct AuditLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The channel of records, and one that is closed when the writer has ended.
    to_writer: Mutex<Option<(Sender<Message>, oneshot::Receiver<()>)>>,
    permits: Arc<Semaphore>,
    recorder: Arc<Recorder>,
    state: Arc<Mutex<State>>,
}

/// What the handles and the writer share.
#[derive(Debug, Default)]
struct State {
    stats: AuditStats,
    /// When each unwritten record was queued, the oldest first. A record is written once the
    /// system has it: it then outlives the process. Each holds a permit, which bounds their number.
    unwritten: VecDeque<Instant>,
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

impl AuditLog {
    /// The maximum number of recorded refusals of unknown tools per second: any client can cause
    /// them at any rate. The log states how many more there were.
    pub const MAX_REFUSALS: u32 = 50;

    /// Opens or creates the files, and starts the writer thread.
    ///
    /// # Errors
    ///
    /// If a setting is invalid, or a file cannot be written, is locked by another process, or has
    /// another key.
    pub fn open(config: &AuditConfig) -> io::Result<Self> {
        config.validate().map_err(|fault| {
            io::Error::other(format!(
                "the settings of the audit log are invalid: {fault}"
            ))
        })?;
        let open = |path: &Path| {
            LogFile::open(path, config).map_err(|error| {
                let text = format!(
                    "the audit log {} cannot be written: {error}",
                    path.display()
                );
                io::Error::new(error.kind(), text)
            })
        };
        let (path, separate) = (&config.path, &config.open_world_path);
        let main = open(path)?;
        let open_world = (separate != path).then(|| open(separate)).transpose()?;
        Self::start(config, main, open_world)
    }

    /// Starts the writer thread.
    fn start(config: &AuditConfig, main: LogFile, open_world: Option<LogFile>) -> io::Result<Self> {
        let (log, messages, writes) = Self::queue(config);
        let writer = Writer {
            main,
            open_world,
            recorder: log.0.recorder.clone(),
            state: log.0.state.clone(),
            records: 0,
            permits: Vec::new(),
            done: Vec::new(),
            sync_at: None,
            rotate_at: None,
            lost: 0,
        };
        std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || {
                // dropped after the files: another process may then open the log at once
                let _writes = writes;
                writer.run(&messages);
            })?;
        Ok(log)
    }

    /// Creates a log without its writer thread.
    fn queue(config: &AuditConfig) -> (Self, Receiver<Message>, oneshot::Sender<()>) {
        let (to_writer, messages) = mpsc::channel();
        let (writes, ended) = oneshot::channel();
        let all = usize::try_from(config.queue).unwrap_or(usize::MAX);
        let log = Self(Arc::new(Shared {
            to_writer: Mutex::new(Some((to_writer, ended))),
            permits: Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS))),
            recorder: Arc::new(Recorder {
                seal: Seal::new(config.key.as_ref()),
                config: config.clone(),
            }),
            state: Arc::default(),
        }));
        (log, messages, writes)
    }

    /// Records the refusal of a call that names an unknown tool or cannot be parsed. `known` is the
    /// tool, if there is one of this name.
    ///
    /// Never waits: with a full queue the record is dropped and counted, and at most
    /// [`MAX_REFUSALS`](Self::MAX_REFUSALS) per second are written.
    pub fn note_refused(
        &self,
        name: &str,
        known: Option<&Tool>,
        caller: &Caller,
        inbound: Option<&Arc<Inbound>>,
        error: &ToolError,
    ) {
        if !self.0.state.lock().admits_refusal() {
            return;
        }
        let recorder = &self.0.recorder;
        let members = recorder.refused(name, known, caller, inbound, error);
        let event = Event::Noted(time::now(), members);
        drop(self.send(event, self.try_permits(1)));
    }

    /// Records what happens to a request for approval: a record of the kind `approval` with these
    /// members. Never waits: with a full queue the record is dropped and counted.
    pub fn note_approval(&self, mut members: Map<String, Value>) {
        if let Some(Value::String(digest)) = members.get_mut("arguments_digest") {
            *digest = self.0.recorder.seal.of_digest(digest);
        }
        let event = Event::Noted(time::now(), event::noted("approval", &members));
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
        let config = self.config();
        [&config.path, &config.open_world_path]
    }

    fn config(&self) -> &AuditConfig {
        &self.0.recorder.config
    }

    /// Writes the queued records and the closing record, and ends the writer. Later calls behave as
    /// if the log could not be written.
    pub async fn close(&self) {
        let writer = self.0.to_writer.lock().take();
        self.0.permits.close();
        if let Some((to_writer, ended)) = writer {
            drop(to_writer);
            let _ = ended.await;
        }
    }

    /// Returns `true` if calls wait for a permit before they are sent.
    pub(crate) fn blocks(&self) -> bool {
        self.config().on_full == OnFull::Block
    }

    /// Takes permits if they are available.
    pub(crate) fn try_permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        let (permits, most) = (self.0.permits.clone(), self.config().queue);
        permits.try_acquire_many_owned(count.min(most)).ok()
    }

    /// Waits for permits; `None` if the log is closed.
    pub(crate) async fn permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        let (permits, most) = (self.0.permits.clone(), self.config().queue);
        permits.acquire_many_owned(count.min(most)).await.ok()
    }

    /// Checks whether a call may be sent although its record may not be written.
    pub(crate) fn admit(&self, rule: AuditRule) -> Result<(), ToolError> {
        let mut state = self.0.state.lock();
        let is_needed =
            self.config().on_failure == OnFailure::FailClosed && rule.level == AuditLevel::Full;
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
        let waits = permit.is_some() && state.bound_is_reached(self.config());
        let (done, written) = waits.then(oneshot::channel).unzip();
        let sent = permit
            .zip(to_writer.as_ref())
            .is_some_and(|(permit, (to_writer, _))| to_writer.send((event, permit, done)).is_ok());
        match sent {
            true => state.unwritten.push_back(Instant::now()),
            false => state.stats.dropped += 1,
        }
        written
    }
}

/// A killed process loses at most this many records of answered calls.
const MAX_RECORDS: usize = 1000;
/// It loses at most those of a second: a record that is queued behind one of this age is written
/// well before, even if it is long or the machine is busy.
const MAX_AGE: Duration = Duration::from_millis(250);

impl State {
    /// Returns `true` if an answer waits: too many records are unwritten, or one for too long.
    fn bound_is_reached(&self, config: &AuditConfig) -> bool {
        let longest = match (config.fsync, config.on_full) {
            // every answer waits
            (Fsync::EveryRecord, _) => return true,
            // no answer waits
            (_, OnFull::Drop) => return false,
            (Fsync::Interval(time), OnFull::Block) => time.min(MAX_AGE),
            (Fsync::Never, OnFull::Block) => MAX_AGE,
        };
        let oldest = self.unwritten.front().map(Instant::elapsed);
        self.unwritten.len() >= MAX_RECORDS || oldest.is_some_and(|age| age >= longest)
    }

    /// Removes the oldest records, which are written.
    fn written(&mut self, records: usize) {
        let written = records.min(self.unwritten.len());
        self.unwritten.drain(..written);
    }

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

#[cfg(test)]
mod tests;
