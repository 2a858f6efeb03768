//! The thread that writes.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::event::{Event, Scribe};
use crate::notes::Note;
use crate::{AuditConfig, Fsync, time};

use super::Counts;
use super::file::LogFile;

/// What the writer is sent.
#[derive(Debug)]
pub(crate) enum Message {
    Event {
        event: Event,
        /// Held until the record is written.
        place: OwnedSemaphorePermit,
        /// Told when the record is written, or on the disk if each is brought there at once.
        done: Option<oneshot::Sender<()>>,
    },
    Flush(oneshot::Sender<()>),
    End(oneshot::Sender<()>),
}

/// The files that are written.
#[derive(Debug)]
pub(crate) struct Logs {
    pub(crate) main: LogFile,
    /// The one for open-world calls, if it is another.
    pub(crate) open_world: Option<LogFile>,
}

impl Logs {
    fn of(&mut self, event: &Event) -> &mut LogFile {
        match (event, &mut self.open_world) {
            (Event::Call(called), Some(apart)) if called.rule.open_world => apart,
            _ => &mut self.main,
        }
    }

    fn each(
        &mut self,
        mut act: impl FnMut(&mut LogFile) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        // the second is tried whatever becomes of the first
        let main = act(&mut self.main);
        let open_world = self.open_world.as_mut().map_or(Ok(()), act);
        main.and(open_world)
    }

    fn waiting(&self) -> usize {
        let apart = self.open_world.as_ref().map_or(0, LogFile::waiting);
        self.main.waiting() + apart
    }
}

/// So much is written at once.
const MUCH: usize = 1 << 20;
/// While a file cannot be written, so much is kept to be written later, in bytes of all files.
const MOST_KEPT: usize = 4 << 20;
/// So long is waited for a first record at a time.
const IDLE: Duration = Duration::from_secs(3600);
/// So often a file that cannot be written is tried again, and a head is written that nobody asked to
/// be on the disk.
const AGAIN: Duration = Duration::from_secs(1);

/// Writes what is sent, until told to end or nobody is left to send.
pub(crate) fn run(messages: &Receiver<Message>, logs: Logs, config: &AuditConfig, counts: &Counts) {
    let mut writer = Writer {
        logs,
        scribe: Scribe::new(config),
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
                        Message::Event { event, place, done } => {
                            writer.batch.places.push(place);
                            writer.add(&event, done);
                        }
                        Message::Flush(done) => {
                            writer.write();
                            writer.sync();
                            // whoever waited may be gone
                            let _ = done.send(());
                        }
                        Message::End(done) => {
                            writer.close();
                            // who is told may open the log again at once
                            drop(writer);
                            let _ = done.send(());
                            return;
                        }
                    }
                    next = match writer.logs.waiting() < MUCH {
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

/// Records that are being written together.
#[derive(Debug, Default)]
struct Batch {
    records: u64,
    places: Vec<OwnedSemaphorePermit>,
    done: Vec<oneshot::Sender<()>>,
}

struct Writer<'a> {
    logs: Logs,
    scribe: Scribe,
    fsync: Fsync,
    counts: &'a Counts,
    batch: Batch,
    /// When what was written is to be brought to the disk at the latest.
    sync_at: Option<Instant>,
    /// When the next file is tried again, after it could not be begun.
    rotate_at: Option<Instant>,
    /// Records that were given up, and that the log does not tell of yet.
    lost: u64,
}

impl Writer<'_> {
    fn is_failing(&self) -> bool {
        self.counts.is_failing.load(Ordering::Relaxed)
    }

    fn add(&mut self, event: &Event, done: Option<oneshot::Sender<()>>) {
        if self.is_failing() && self.logs.waiting() >= MOST_KEPT {
            self.lost += 1;
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.tell_suppressed();
        let body = self.scribe.body(event);
        let at = match event {
            Event::Call(called) => called.at,
            Event::Refused(refused) => refused.at,
        };
        let log = self.logs.of(event);
        if self.rotate_at.is_none_or(|at| at <= Instant::now()) {
            self.rotate_at = match log.rotate_if_due(time::now()) {
                Ok(()) => None,
                // all goes on in the file there is; if that cannot be written either, it will show
                Err(error) => {
                    tracing::error!(%error, "the next file of the audit log cannot be begun");
                    Instant::now().checked_add(AGAIN)
                }
            };
        }
        log.push(&body, at);
        self.batch.records += 1;
        self.batch.done.extend(done);
    }

    fn tell_suppressed(&mut self) {
        if self.counts.untold.load(Ordering::Relaxed) > 0 {
            let records = self.counts.untold.swap(0, Ordering::Relaxed);
            self.logs.main.note(&Note::Suppressed { records });
        }
    }

    /// Writes what waits. What cannot be written waits on, in memory; nobody waits for it.
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
        // a place is one in memory: records that cannot be written would stop every call
        let written = self.batch.places.len();
        self.counts.unwritten.lock().written(written);
        self.batch.places.clear();
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
                    // whoever waited may be gone
                    let _ = done.send(());
                }
            }
            Err(error) => {
                fails(self.counts, &error);
                self.sync_at = Some(Instant::now() + AGAIN);
                self.batch.done.clear();
            }
        }
    }

    fn sync_after(&self) -> Duration {
        match self.fsync {
            Fsync::Interval(time) => time,
            Fsync::EveryRecord | Fsync::Never => AGAIN,
        }
    }

    fn is_sync_due(&self) -> bool {
        self.sync_at.is_some_and(|at| at <= Instant::now())
    }

    fn patience(&self) -> Duration {
        if self.is_failing() {
            return AGAIN;
        }
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        self.sync_at.map_or(IDLE, until)
    }

    fn close(&mut self) {
        self.tell_suppressed();
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

/// From here on calls are told. Said once for each time that it begins.
fn fails(counts: &Counts, error: &std::io::Error) {
    *counts.why.lock() = error.to_string();
    if !counts.is_failing.swap(true, Ordering::Relaxed) {
        tracing::error!(%error, "the audit log cannot be written; tried again each second");
    }
}
