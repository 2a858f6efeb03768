//! Standard error. In a gateway a thread of its own writes it: a reader that stops reading must not
//! stop calls or the end of the process. Lines that find the queue full are dropped and counted.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// How many writes wait for the thread at most.
const QUEUE: usize = 1024;

/// How long the end of the process waits for the queue to be written.
const FLUSH: Duration = Duration::from_secs(1);

static QUEUED: OnceLock<SyncSender<Queued>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Queued {
    Bytes(Vec<u8>),
    /// Answered once everything before it is written.
    Flush(SyncSender<()>),
}

/// Standard error of this process. Each `write` is a whole line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Stderr {
    /// Lets a thread write from now on, for commands that serve.
    pub(crate) fn detach() {
        let (sender, receiver) = sync_channel(QUEUE);
        if QUEUED.set(sender).is_ok() {
            std::thread::spawn(|| drain(receiver, io::stderr()));
        }
    }

    /// Waits until what is queued is written, for a bounded time.
    pub(crate) fn finish() {
        let Some(queue) = QUEUED.get() else { return };
        let (written, waits) = sync_channel(1);
        // a full queue has no reader
        if queue.try_send(Queued::Flush(written)).is_ok() {
            let _ = waits.recv_timeout(FLUSH);
        }
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match QUEUED.get() {
            None => return io::stderr().write(bytes),
            Some(queue) => {
                if queue.try_send(Queued::Bytes(bytes.to_vec())).is_err() {
                    DROPPED.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn drain(queue: Receiver<Queued>, mut to: impl Write) {
    for queued in queue {
        match queued {
            Queued::Bytes(bytes) => {
                // nothing is left to report a failure to
                let _ = to.write_all(&bytes);
                let dropped = DROPPED.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    let _ = writeln!(
                        to,
                        "{dropped} lines were dropped: standard error was not read"
                    );
                }
            }
            Queued::Flush(written) => {
                let _ = written.send(());
            }
        }
    }
}
