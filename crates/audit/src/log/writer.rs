//! The writer thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::event::{Event, Recorder};
use crate::notes::Note;
use crate::{Fsync, time};

use super::State;
use super::file::LogFile;

/// An event, its permit, which is held until the record is written, and what is notified when it is
/// written, or synced with [`Fsync::EveryRecord`].
pub(super) type Message = (Event, OwnedSemaphorePermit, Option<Done>);

pub(super) type Done = oneshot::Sender<()>;

/// The size of one write in bytes.
const MAX_WRITE: usize = 1 << 20;
/// The limit on buffered bytes while a file cannot be written.
const MAX_BUFFERED: usize = 4 << 20;
/// The longest wait for a message.
const IDLE: Duration = Duration::from_secs(3600);
/// The time between two attempts to write a file that fails.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    pub(super) main: LogFile,
    /// The file for open-world calls, if separate.
    pub(super) open_world: Option<LogFile>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) state: Arc<Mutex<State>>,
    /// How many records are written together next, and what is held and notified for them.
    pub(super) records: u64,
    pub(super) permits: Vec<OwnedSemaphorePermit>,
    pub(super) done: Vec<Done>,
    /// When the next sync is due.
    pub(super) sync_at: Option<Instant>,
    /// When a failed rotation is retried.
    pub(super) rotate_at: Option<Instant>,
    /// Dropped records that the log does not state yet.
    pub(super) lost: u64,
}

impl Writer {
    /// Writes records until the log is closed or dropped.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let mut next = match messages.recv_timeout(self.patience()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.close(),
            };
            while let Some((event, permit, done)) = next {
                self.permits.push(permit);
                self.add(event, done);
                let is_full = self.waiting() >= MAX_WRITE;
                next = (!is_full).then(|| messages.try_recv().ok()).flatten();
            }
            self.write();
            let is_due = self.sync_at.is_some_and(|at| at <= Instant::now());
            if self.recorder.config.fsync == Fsync::EveryRecord || is_due {
                self.sync();
            }
        }
    }

    /// Does this to each file, even if it fails for one.
    fn each(&mut self, act: fn(&mut LogFile) -> io::Result<()>) -> io::Result<()> {
        let separate = self.open_world.as_mut().map_or(Ok(()), act);
        act(&mut self.main).and(separate)
    }

    fn waiting(&self) -> usize {
        let files = [&self.main].into_iter().chain(&self.open_world);
        files.map(|file| file.buffer.len()).sum()
    }

    fn is_failing(&self) -> bool {
        self.state.lock().stats.is_failing
    }

    fn add(&mut self, event: Event, done: Option<Done>) {
        if self.is_failing() && self.waiting() >= MAX_BUFFERED {
            self.lost += 1;
            self.state.lock().stats.failed += 1;
            return;
        }
        self.note_suppressed();
        let (at, open_world, members) = match event {
            Event::Call(called) => {
                let members = self.recorder.called(&called);
                (called.at, called.call.plan().audit.open_world, members)
            }
            Event::Noted(at, members) => (at, false, members),
        };
        let separate = self.open_world.as_mut().filter(|_| open_world);
        let log = separate.unwrap_or(&mut self.main);
        if self.rotate_at.is_none_or(|at| at <= Instant::now()) {
            let rotated = log.rotate_if_due(time::now());
            // on failure the current file stays in use
            self.rotate_at = rotated.err().and_then(|error| {
                tracing::error!(%error, "the audit log cannot be rotated");
                Instant::now().checked_add(RETRY)
            });
        }
        log.push(&members, at);
        self.records += 1;
        self.done.extend(done);
    }

    fn note_suppressed(&mut self) {
        let records = std::mem::take(&mut self.state.lock().unstated);
        if records > 0 {
            self.main.note(&Note::Suppressed { records });
        }
    }

    /// Writes the buffers. On failure they stay in memory, and no answer waits for them.
    fn write(&mut self) {
        if self.waiting() == 0 && !self.is_failing() {
            return;
        }
        match self.each(LogFile::flush) {
            Ok(()) => {
                self.state.lock().stats.written += std::mem::take(&mut self.records);
                if self.sync_at.is_none() {
                    let after = match self.recorder.config.fsync {
                        Fsync::Interval(time) => time,
                        Fsync::EveryRecord | Fsync::Never => RETRY,
                    };
                    self.sync_at = Instant::now().checked_add(after);
                }
                if std::mem::take(&mut self.state.lock().stats.is_failing) {
                    tracing::info!("the audit log can be written again");
                    let records = std::mem::take(&mut self.lost);
                    if records > 0 {
                        self.main.note(&Note::Lost { records });
                        self.write();
                    }
                }
            }
            Err(error) => self.fails(&error),
        }
        // released on failure too, or all calls would stop
        self.state.lock().written(self.permits.len());
        self.permits.clear();
        if self.recorder.config.fsync != Fsync::EveryRecord || self.is_failing() {
            self.done.clear();
        }
    }

    fn sync(&mut self) {
        self.sync_at = match self.each(LogFile::sync) {
            Ok(()) => None,
            Err(error) => {
                self.fails(&error);
                Some(Instant::now() + RETRY)
            }
        };
        // an answer does not wait for a failing file either
        self.done.clear();
    }

    fn patience(&self) -> Duration {
        if self.is_failing() {
            return RETRY;
        }
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        self.sync_at.map_or(IDLE, until)
    }

    fn close(&mut self) {
        self.note_suppressed();
        self.write();
        if let Err(error) = self.each(LogFile::close) {
            self.fails(&error);
            self.state.lock().stats.failed += self.records;
            tracing::error!(records = self.records, %error, "audit records are lost");
        }
        self.sync();
    }

    /// Records a failure, and logs the first one in a row.
    fn fails(&self, error: &io::Error) {
        let mut state = self.state.lock();
        state.why = error.to_string();
        if !std::mem::replace(&mut state.stats.is_failing, true) {
            tracing::error!(%error, "the audit log cannot be written; retried each second");
        }
    }
}
