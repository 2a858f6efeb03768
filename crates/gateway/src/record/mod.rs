//! Records calls for `callward replay --calls`.
//!
//! Recording neither delays nor fails a call: a separate thread writes, and calls beyond its queue
//! are dropped and counted.

mod line;
mod writer;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use callward::core::{CallRecord, FingerprintKey};
use callward::{Delivery, Stack, ToolCall, ToolError, ToolOutput};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::line::Scribe;
use self::writer::{File, Message, Written};
use crate::args::Recording;
use crate::error::AppError;
use crate::output;

/// Records calls; by default none. Clones share the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    file: String,
    to_writer: SyncSender<Message>,
    writer: Mutex<Option<JoinHandle<Written>>>,
    waiting_bytes: Arc<AtomicUsize>,
    started: Instant,
    next: AtomicU64,
    dropped: AtomicU64,
}

/// A call that ended, with the data of its line.
#[derive(Debug)]
struct Recorded {
    call: ToolCall,
    /// As clients see it.
    tool: String,
    seq: u64,
    record: Arc<CallRecord>,
    at: Duration,
    took: Duration,
    /// The answer, or how far the call got without one.
    answer: Result<ToolOutput, Delivery>,
}

/// How many calls may wait to be written.
const WAITING: usize = 4_096;
/// How many bytes they may hold.
const WAITING_BYTES: usize = 64 << 20;

impl Recorder {
    /// Opens the file that the arguments name, if they name one.
    ///
    /// # Errors
    ///
    /// [`AppError`] if it cannot be written, or holds something else.
    pub(crate) fn open(recording: &Recording) -> Result<Self, AppError> {
        let Some(path) = &recording.record else {
            return Ok(Self::default());
        };
        // std seeds each state from the system's random source
        let word = || RandomState::new().hash_one(0_u8);
        let secret = FingerprintKey::new(word(), word());
        let trace = format!("callward-{:016x}", word());
        let scribe = Scribe::new(trace, secret, recording.record_arguments);
        Self::start(path, scribe)
    }

    fn start(path: &Path, scribe: Scribe) -> Result<Self, AppError> {
        let file = File::open(path)?;
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let (to_writer, calls) = sync_channel(WAITING);
        let weight = waiting_bytes.clone();
        let writer = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer::run(&calls, file, &scribe, &weight))
            .map_err(AppError::io("the recorder does not start"))?;
        Ok(Self(Some(Arc::new(Inner {
            file: path.display().to_string(),
            to_writer,
            writer: Mutex::new(Some(writer)),
            waiting_bytes,
            started: Instant::now(),
            next: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }))))
    }

    /// Sends a call through the stack, and records it. `name` is the tool's name for the client. A
    /// call that is dropped on the way is written down as one without an answer.
    ///
    /// # Errors
    ///
    /// Those of the stack.
    pub(crate) async fn run(
        &self,
        stack: &Stack,
        name: &str,
        mut call: ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let Some(inner) = &self.0 else {
            return stack.run(call).await;
        };
        let entry = stack.catalogue().find(name).cloned();
        let tool = entry.map_or_else(|| name.into(), |entry| entry.client_name().to_owned());
        let record = call.ensure_record(CallRecord::new);
        let mut watched = Watched {
            recorder: inner.clone(),
            began: Instant::now(),
            recorded: Some(Recorded {
                call: call.clone(),
                tool,
                seq: inner.next.fetch_add(1, Ordering::Relaxed),
                record,
                at: inner.started.elapsed(),
                took: Duration::ZERO,
                // a client that leaves without an answer does not know the outcome
                answer: Err(Delivery::Unknown),
            }),
        };
        let result = stack.run(call).await;
        if let Some(recorded) = &mut watched.recorded {
            recorded.answer = match &result {
                Ok(output) => Ok(output.clone()),
                Err(error) => Err(error.delivery()),
            };
        }
        result
    }

    /// Writes the calls that wait, and reports the number of recorded calls.
    pub(crate) async fn finish(&self) {
        let Some(inner) = self.0.clone() else {
            return;
        };
        let file = inner.file.clone();
        let ended = tokio::task::spawn_blocking(move || inner.end()).await;
        let Ok(Some((written, dropped))) = ended else {
            return;
        };
        output::note(format_args!("recorded {} calls in {file}", written.lines));
        let path = Path::new(&file);
        output::missing(dropped, "calls", path, output::LATE);
        output::missing(written.lost, "calls", path, output::FAILED);
    }
}

impl Inner {
    fn push(&self, recorded: Recorded) {
        let bytes = recorded.bytes();
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = waiting <= WAITING_BYTES;
        if !fits || self.to_writer.try_send(Some(Box::new(recorded))).is_err() {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all is written. Blocks. Returns `None` on a second call.
    fn end(&self) -> Option<(Written, u64)> {
        let writer = self.writer.lock().take()?;
        // a writer that is gone needs no message
        let _ = self.to_writer.send(None);
        let written = writer.join().ok()?;
        Some((written, self.dropped.load(Ordering::Relaxed)))
    }
}

impl Recorded {
    fn bytes(&self) -> usize {
        let body = self.answer.as_ref().map_or(0, |output| output.body().len());
        self.call.arguments().len() + body
    }
}

/// A call on its way. It is recorded when this is dropped, with its answer or without.
struct Watched {
    recorder: Arc<Inner>,
    began: Instant,
    recorded: Option<Recorded>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(mut recorded) = self.recorded.take() {
            recorded.took = self.began.elapsed();
            self.recorder.push(recorded);
        }
    }
}
