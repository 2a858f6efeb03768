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

static QUEUED: OnceLock<SyncSender<Job>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// What the thread does next.
type Job = Box<dyn FnOnce(&mut io::Stderr) + Send>;

/// Standard error of this process. Each `write` is a whole line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Stderr {
    /// Lets a thread write from now on, for commands that serve.
    pub(crate) fn detach() {
        let (sender, receiver) = sync_channel(QUEUE);
        if QUEUED.set(sender).is_ok() {
            std::thread::spawn(|| drain(receiver));
        }
    }

    /// Waits until what is queued is written, for a bounded time.
    pub(crate) fn finish() {
        let Some(queue) = QUEUED.get() else { return };
        let (written, waits) = sync_channel::<()>(1);
        // a full queue has no reader
        if queue.try_send(Box::new(move |_| drop(written))).is_ok() {
            let _ = waits.recv_timeout(FLUSH);
        }
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(queue) = QUEUED.get() else {
            return io::stderr().write(bytes);
        };
        let line = bytes.to_vec();
        // nothing is left to report a failure to
        let job = Box::new(move |to: &mut io::Stderr| to.write_all(&line).unwrap_or_default());
        if queue.try_send(job).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn drain(queue: Receiver<Job>) {
    let mut to = io::stderr();
    for job in queue {
        job(&mut to);
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = writeln!(
                to,
                "{dropped} lines were dropped: standard error was not read"
            );
        }
    }
}
