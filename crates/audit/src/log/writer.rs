//! The writer thread.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::event::{Event, Recorder};
use crate::notes::Note;
use crate::{AuditConfig, Fsync, time};

use super::Counts;
use super::file::LogFile;

/// A message to the writer.
#[derive(Debug)]
pub(crate) enum Message {
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
pub(crate) struct Logs {
    pub(crate) main: LogFile,
    /// The file for open-world calls, if separate.
    pub(crate) open_world: Option<LogFile>,
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
pub(crate) fn run(messages: &Receiver<Message>, logs: Logs, config: &AuditConfig, counts: &Counts) {
    let mut writer = Writer {
        logs,
        recorder: Recorder::new(config),
        fsync: config.fsync,
        counts,
        batch: Batch::default(),
        sync_at: None,
        rotate_at: None,
        lost: 0,
    };
    loop {
        match messages.recv_timeout(writer.patience()) {
            Ok(first) => {
                let mut next = Some(first);
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
                    next = match writer.logs.waiting() < MAX_WRITE {
                        true => messages.try_recv().ok(),
                        false => None,
                    };
                }
                writer.write();
            }
            Err(RecvTimeoutError::Timeout) => writer.write(),
            Err(RecvTimeoutError::Disconnected) => return writer.close(),
        }
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
    counts: &'a Counts,
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
        self.counts.is_failing.load(Ordering::Relaxed)
    }

    fn add(&mut self, event: &Event, done: Option<oneshot::Sender<()>>) {
        if self.is_failing() && self.logs.waiting() >= MAX_BUFFERED {
            self.lost += 1;
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.note_suppressed();
        let members = self.recorder.members(event);
        let at = match event {
            Event::Call(called) => called.at,
            Event::Refused(refused) => refused.at,
        };
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
        log.push(&members, at);
        self.batch.records += 1;
        self.batch.done.extend(done);
    }

    fn note_suppressed(&mut self) {
        if self.counts.unstated.load(Ordering::Relaxed) > 0 {
            let records = self.counts.unstated.swap(0, Ordering::Relaxed);
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
                self.counts
                    .written
                    .fetch_add(self.batch.records, Ordering::Relaxed);
                self.batch.records = 0;
                if self.sync_at.is_none() {
                    self.sync_at = Instant::now().checked_add(self.sync_after());
                }
                if self.is_failing() {
                    self.recovers();
                }
            }
            Err(error) => fails(self.counts, &error),
        }
        // released on failure too, or all calls would stop
        let written = self.batch.permits.len();
        self.counts.unwritten.lock().written(written);
        self.batch.permits.clear();
        if self.fsync != Fsync::EveryRecord || self.is_failing() {
            self.batch.done.clear();
        }
    }

    fn recovers(&mut self) {
        self.counts.is_failing.store(false, Ordering::Relaxed);
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
                fails(self.counts, &error);
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
            fails(self.counts, &error);
            let kept = self.batch.records;
            self.counts.failed.fetch_add(kept, Ordering::Relaxed);
            tracing::error!(records = kept, %error, "audit records are lost");
        }
        self.sync();
    }
}

/// Records a failure, and logs the first one in a row.
fn fails(counts: &Counts, error: &std::io::Error) {
    *counts.why.lock() = error.to_string();
    if !counts.is_failing.swap(true, Ordering::Relaxed) {
        tracing::error!(%error, "the audit log cannot be written; retried each second");
    }
}
