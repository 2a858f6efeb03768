//! Records calls for `callward replay --calls`.
//!
//! Recording neither delays nor fails a call: a separate thread writes, and calls beyond its queue
//! are dropped and counted.

mod line;
mod writer;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use callward::core::{CallRecord, FingerprintKey};
use callward::{Delivery, Stack, ToolCall, ToolError, ToolOutput};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
    /// Has a permit for each byte that may wait.
    permits: Arc<Semaphore>,
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
    /// Held until the line is written.
    permits: Option<OwnedSemaphorePermit>,
}

/// How many calls may wait to be written.
const WAITING: usize = 4_096;
/// How many bytes they may hold.
const WAITING_BYTES: u32 = 64 << 20;

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
        let scribe = Scribe {
            trace: format!("callward-{:016x}", word()),
            secret: FingerprintKey::new(word(), word()),
            arguments: recording.record_arguments,
        };
        let file = File::open(path)?;
        let (to_writer, calls) = sync_channel(WAITING);
        let writer = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer::run(&calls, file, &scribe))
            .map_err(AppError::io("the recorder does not start"))?;
        Ok(Self(Some(Arc::new(Inner {
            file: path.display().to_string(),
            to_writer,
            writer: Mutex::new(Some(writer)),
            permits: Arc::new(Semaphore::new(WAITING_BYTES as usize)),
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
        let began = Instant::now();
        let recorded = Recorded {
            call: call.clone(),
            tool,
            seq: inner.next.fetch_add(1, Ordering::Relaxed),
            record,
            at: began - inner.started,
            took: Duration::ZERO,
            // a client that leaves without an answer does not know the outcome
            answer: Err(Delivery::Unknown),
            permits: None,
        };
        let mut recorded = scopeguard::guard(recorded, |mut recorded| {
            recorded.took = began.elapsed();
            inner.push(recorded);
        });
        let result = stack.run(call).await;
        recorded.answer = match &result {
            Ok(output) => Ok(output.clone()),
            Err(error) => Err(error.delivery),
        };
        result
    }

    /// Writes the calls that wait, and reports the number of recorded calls.
    pub(crate) async fn finish(&self) {
        let Some(inner) = &self.0 else {
            return;
        };
        let (writer, to_writer) = (inner.writer.lock().take(), inner.to_writer.clone());
        let ended = tokio::task::spawn_blocking(move || {
            // a writer that is gone needs no message
            let _ = to_writer.send(None);
            writer?.join().ok()
        });
        let Ok(Some(written)) = ended.await else {
            return;
        };
        let (file, path) = (&inner.file, Path::new(&inner.file));
        let recorded = output::counted(&written.lines, "call");
        output::note(format_args!("recorded {recorded} in {file}"));
        let dropped = inner.dropped.load(Ordering::Relaxed);
        output::missing(dropped, "calls", path, output::LATE);
        output::missing(written.lost, "calls", path, output::FAILED);
    }
}

impl Inner {
    fn push(&self, mut recorded: Recorded) {
        let body = recorded.answer.as_ref();
        let body = body.map_or(0, |output| output.body().len());
        let bytes = u32::try_from(recorded.call.arguments().len() + body);
        let bytes = bytes.map_or(WAITING_BYTES, |bytes| bytes.min(WAITING_BYTES));
        recorded.permits = self.permits.clone().try_acquire_many_owned(bytes).ok();
        let has_permits = recorded.permits.is_some();
        if !has_permits || self.to_writer.try_send(Some(Box::new(recorded))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
