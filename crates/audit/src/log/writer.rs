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
use crate::{AuditConfig, Fsync, time};

use super::State;
use super::file::LogFile;

/// A message to the writer.
#[derive(Debug)]
pub(super) enum Message {
    /// An event, its permit, which is held until the record is written, and what is notified when
    /// it is written, or synced with [`Fsync::EveryRecord`].
    Event(Event, OwnedSemaphorePermit, Option<Done>),
    Flush(Done),
    End(Done),
}

pub(super) type Done = oneshot::Sender<()>;

/// The open files.
#[derive(Debug)]
pub(super) struct Logs {
    pub(super) main: LogFile,
    /// The file for open-world calls, if separate.
    pub(super) open_world: Option<LogFile>,
}

impl Logs {
    fn of(&mut self, event: &Event) -> &mut LogFile {
        match (event, &mut self.open_world) {
            (Event::Call(called), Some(separate)) if called.rule().open_world => separate,
            _ => &mut self.main,
        }
    }

    /// Does this to each file, even if it fails for one.
    fn each(&mut self, act: fn(&mut LogFile) -> io::Result<()>) -> io::Result<()> {
        let results = [
            act(&mut self.main),
            self.open_world.as_mut().map_or(Ok(()), act),
        ];
        results.into_iter().collect()
    }

    fn waiting(&self) -> usize {
        let separate = self.open_world.as_ref().map_or(0, LogFile::waiting);
        self.main.waiting() + separate
    }
}

/// The size of one write in bytes.
const MAX_WRITE: usize = 1 << 20;
/// The limit on buffered bytes while a file cannot be written.
const MAX_BUFFERED: usize = 4 << 20;
/// The longest wait for a message.
const IDLE: Duration = Duration::from_secs(3600);
/// The time between two attempts to write a file that fails.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    logs: Logs,
    recorder: Recorder,
    fsync: Fsync,
    state: Arc<Mutex<State>>,
    /// How many records are written together next, and what is held and notified for them.
    records: u64,
    permits: Vec<OwnedSemaphorePermit>,
    done: Vec<Done>,
    /// When the next sync is due.
    sync_at: Option<Instant>,
    /// When a failed rotation is retried.
    rotate_at: Option<Instant>,
    /// Dropped records that the log does not state yet.
    lost: u64,
}

impl Writer {
    pub(super) fn new(logs: Logs, config: &AuditConfig, state: Arc<Mutex<State>>) -> Self {
        Self {
            logs,
            recorder: Recorder::new(config),
            fsync: config.fsync,
            state,
            records: 0,
            permits: Vec::new(),
            done: Vec::new(),
            sync_at: None,
            rotate_at: None,
            lost: 0,
        }
    }

    /// Writes records until the log is closed or dropped.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let mut next = match messages.recv_timeout(self.patience()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.close(),
            };
            while let Some(message) = next {
                match message {
                    Message::Event(event, permit, done) => {
                        self.permits.push(permit);
                        self.add(&event, done);
                    }
                    Message::Flush(done) => {
                        self.write();
                        self.sync();
                        // the receiver may be dropped
                        let _ = done.send(());
                    }
                    Message::End(done) => {
                        self.close();
                        // the receiver may reopen the log at once
                        drop(self);
                        let _ = done.send(());
                        return;
                    }
                }
                let is_full = self.logs.waiting() >= MAX_WRITE;
                next = (!is_full).then(|| messages.try_recv().ok()).flatten();
            }
            self.write();
            let is_due = self.sync_at.is_some_and(|at| at <= Instant::now());
            if self.fsync == Fsync::EveryRecord || is_due {
                self.sync();
            }
        }
    }

    fn is_failing(&self) -> bool {
        self.state.lock().stats.is_failing
    }

    fn add(&mut self, event: &Event, done: Option<Done>) {
        if self.is_failing() && self.logs.waiting() >= MAX_BUFFERED {
            self.lost += 1;
            self.state.lock().stats.failed += 1;
            return;
        }
        self.note_suppressed();
        let members = self.recorder.members(event);
        let log = self.logs.of(event);
        if self.rotate_at.is_none_or(|at| at <= Instant::now()) {
            let rotated = log.rotate_if_due(time::now());
            // on failure the current file stays in use
            self.rotate_at = rotated.err().and_then(|error| {
                tracing::error!(%error, "the audit log cannot be rotated");
                Instant::now().checked_add(RETRY)
            });
        }
        log.push(&members, event.at());
        self.records += 1;
        self.done.extend(done);
    }

    fn note_suppressed(&mut self) {
        let records = std::mem::take(&mut self.state.lock().unstated);
        if records > 0 {
            self.logs.main.note(&Note::Suppressed { records });
        }
    }

    /// Writes the buffers. On failure they stay in memory, and no answer waits for them.
    fn write(&mut self) {
        if self.logs.waiting() == 0 && !self.is_failing() {
            return;
        }
        match self.logs.each(LogFile::flush) {
            Ok(()) => {
                self.state.lock().stats.written += std::mem::take(&mut self.records);
                if self.sync_at.is_none() {
                    let after = match self.fsync {
                        Fsync::Interval(time) => time,
                        Fsync::EveryRecord | Fsync::Never => RETRY,
                    };
                    self.sync_at = Instant::now().checked_add(after);
                }
                if self.is_failing() {
                    self.recovers();
                }
            }
            Err(error) => self.fails(&error),
        }
        // released on failure too, or all calls would stop
        self.state.lock().unwritten.written(self.permits.len());
        self.permits.clear();
        if self.fsync != Fsync::EveryRecord || self.is_failing() {
            self.done.clear();
        }
    }

    fn recovers(&mut self) {
        self.state.lock().stats.is_failing = false;
        tracing::info!("the audit log can be written again");
        let records = std::mem::take(&mut self.lost);
        if records > 0 {
            self.logs.main.note(&Note::Lost { records });
            self.write();
        }
    }

    fn sync(&mut self) {
        self.sync_at = match self.logs.each(LogFile::sync) {
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
        if let Err(error) = self.logs.each(LogFile::close) {
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
