//! The writer thread.

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
    Event {
        event: Event,
        /// Held until the record is written.
        permit: OwnedSemaphorePermit,
        /// Notified when the record is written, or synced with [`Fsync::EveryRecord`].
        done: Option<oneshot::Sender<()>>,
    },
    Flush(oneshot::Sender<()>),
    End(oneshot::Sender<()>),
}

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

    fn each(
        &mut self,
        mut act: impl FnMut(&mut LogFile) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        // both are tried, even if the first fails
        let main = act(&mut self.main);
        let open_world = self.open_world.as_mut().map_or(Ok(()), act);
        main.and(open_world)
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

/// Writes records until the log is closed or dropped.
pub(super) fn run(
    messages: &Receiver<Message>,
    logs: Logs,
    config: &AuditConfig,
    state: &Mutex<State>,
) {
    let mut writer = Writer {
        logs,
        recorder: Recorder::new(config),
        fsync: config.fsync,
        state,
        batch: Batch::default(),
        sync_at: None,
        rotate_at: None,
        lost: 0,
    };
    loop {
        let mut next = match messages.recv_timeout(writer.patience()) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return writer.close(),
        };
        while let Some(message) = next {
            match message {
                Message::Event {
                    event,
                    permit,
                    done,
                } => {
                    writer.batch.permits.push(permit);
                    writer.add(&event, done);
                }
                Message::Flush(done) => {
                    writer.write();
                    writer.sync();
                    // the receiver may be dropped
                    let _ = done.send(());
                }
                Message::End(done) => {
                    writer.close();
                    // the receiver may reopen the log at once
                    drop(writer);
                    let _ = done.send(());
                    return;
                }
            }
            let is_full = writer.logs.waiting() >= MAX_WRITE;
            next = if is_full {
                None
            } else {
                messages.try_recv().ok()
            };
        }
        writer.write();
        if writer.fsync == Fsync::EveryRecord || writer.is_sync_due() {
            writer.sync();
        }
    }
}

/// Records that are written together.
#[derive(Debug, Default)]
struct Batch {
    records: u64,
    permits: Vec<OwnedSemaphorePermit>,
    done: Vec<oneshot::Sender<()>>,
}

struct Writer<'a> {
    logs: Logs,
    recorder: Recorder,
    fsync: Fsync,
    state: &'a Mutex<State>,
    batch: Batch,
    /// When the next sync is due.
    sync_at: Option<Instant>,
    /// When a failed rotation is retried.
    rotate_at: Option<Instant>,
    /// Dropped records that the log does not state yet.
    lost: u64,
}

impl Writer<'_> {
    fn is_failing(&self) -> bool {
        self.state.lock().stats.is_failing
    }

    fn add(&mut self, event: &Event, done: Option<oneshot::Sender<()>>) {
        if self.is_failing() && self.logs.waiting() >= MAX_BUFFERED {
            self.lost += 1;
            self.state.lock().stats.failed += 1;
            return;
        }
        self.note_suppressed();
        let members = self.recorder.members(event);
        let log = self.logs.of(event);
        if self.rotate_at.is_none_or(|at| at <= Instant::now()) {
            self.rotate_at = match log.rotate_if_due(time::now()) {
                Ok(()) => None,
                // the current file stays in use
                Err(error) => {
                    tracing::error!(%error, "the audit log cannot be rotated");
                    Instant::now().checked_add(RETRY)
                }
            };
        }
        log.push(&members, event.at());
        self.batch.records += 1;
        self.batch.done.extend(done);
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
                self.state.lock().stats.written += std::mem::take(&mut self.batch.records);
                if self.sync_at.is_none() {
                    self.sync_at = Instant::now().checked_add(self.sync_after());
                }
                if self.is_failing() {
                    self.recovers();
                }
            }
            Err(error) => self.fails(&error),
        }
        // released on failure too, or all calls would stop
        let written = self.batch.permits.len();
        self.state.lock().unwritten.written(written);
        self.batch.permits.clear();
        if self.fsync != Fsync::EveryRecord || self.is_failing() {
            self.batch.done.clear();
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
        match self.logs.each(LogFile::sync) {
            Ok(()) => {
                self.sync_at = None;
                for done in self.batch.done.drain(..) {
                    // the receiver may be dropped
                    let _ = done.send(());
                }
            }
            Err(error) => {
                self.fails(&error);
                self.sync_at = Some(Instant::now() + RETRY);
                self.batch.done.clear();
            }
        }
    }

    fn sync_after(&self) -> Duration {
        match self.fsync {
            Fsync::Interval(time) => time,
            Fsync::EveryRecord | Fsync::Never => RETRY,
        }
    }

    fn is_sync_due(&self) -> bool {
        self.sync_at.is_some_and(|at| at <= Instant::now())
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
            let records = self.batch.records;
            self.state.lock().stats.failed += records;
            tracing::error!(records, %error, "audit records are lost");
        }
        self.sync();
    }

    /// Records a failure, and logs the first one in a row.
    fn fails(&self, error: &std::io::Error) {
        let mut state = self.state.lock();
        state.why = error.to_string();
        if !std::mem::replace(&mut state.stats.is_failing, true) {
            tracing::error!(%error, "the audit log cannot be written; retried each second");
        }
    }
}
