//! A call that leaves a record.

use std::sync::Arc;

use callward_core::{CallRecord, ToolCall, ToolError, ToolOutput};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::event::{Called, Ending};
use crate::{AuditLog, time};

/// Follows a call to its end. Dropped before [`end`](Self::end), it records a cancelled call.
#[derive(Debug)]
pub(crate) struct Watch {
    log: AuditLog,
    called: Option<Box<Called>>,
    began: Instant,
    deadline: Option<Instant>,
    weight: u32,
    permit: Option<OwnedSemaphorePermit>,
}

/// The admission of a call.
#[derive(Debug)]
pub(crate) enum Entry {
    Admit,
    Refuse(ToolError),
    /// The queue is full.
    Wait,
}

/// Bytes of arguments or result per additional permit.
const BYTES_PER_PERMIT: usize = 16 << 10;

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes / BYTES_PER_PERMIT).unwrap_or(u32::MAX)
}

impl Watch {
    /// Begins to follow a call, and adds a [`CallRecord`] if it has none.
    pub(crate) fn begin(log: AuditLog, call: ToolCall) -> (ToolCall, Box<Self>) {
        let (call, record) = match call.record().cloned() {
            Some(record) => (call, record),
            None => {
                let record = Arc::new(CallRecord::for_counting());
                (call.with_record(record.clone()), record)
            }
        };
        let watch = Self {
            log,
            called: Some(Box::new(Called::new(&call, record, time::now()))),
            began: Instant::now(),
            deadline: call.deadline().map(Instant::from_std),
            weight: permits(call.arguments().len()).saturating_add(1),
            permit: None,
        };
        (call, Box::new(watch))
    }

    /// Decides whether the call may be sent, and takes a permit if one is available.
    pub(crate) fn enter(&mut self) -> Entry {
        if let Err(error) = self.admit() {
            return Entry::Refuse(error);
        }
        if !self.log.blocks() {
            // a permit is taken at the end of the call
            return Entry::Admit;
        }
        self.permit = self.log.try_permits(self.weight);
        match self.permit {
            Some(_) => Entry::Admit,
            None => Entry::Wait,
        }
    }

    fn admit(&self) -> Result<(), ToolError> {
        let called = self.called.as_ref();
        called.map_or(Ok(()), |called| self.log.admit(called.rule))
    }

    /// Waits for permits.
    ///
    /// # Errors
    ///
    /// If the deadline passes, or the log cannot be written.
    pub(crate) async fn wait(&mut self) -> Result<(), ToolError> {
        let permit = self.log.permits(self.weight);
        self.permit = match self.deadline {
            None => permit.await,
            Some(deadline) => tokio::time::timeout_at(deadline, permit)
                .await
                .map_err(|_| AuditLog::queue_full())?,
        };
        self.admit()
    }

    /// Queues the record. The answer waits for the returned step.
    pub(crate) fn end(
        mut self: Box<Self>,
        result: &Result<ToolOutput, ToolError>,
    ) -> Option<After> {
        let ending = match result {
            Ok(output) => Ending::Answered(output.clone()),
            Err(error) => Ending::Failed(error.clone()),
        };
        let more = permits(ending.bytes());
        if let Some(called) = &mut self.called {
            called.ending = ending;
            called.at = time::now();
            called.took = self.began.elapsed();
        }
        if self.log.blocks() && more > 0 && !self.grow(more) {
            return Some(After::Permits { watch: self, more });
        }
        self.queue(more)
    }

    /// Takes more permits for a large result. Returns `true` if they are available.
    fn grow(&mut self, more: u32) -> bool {
        let Some(more) = self.log.try_permits(more) else {
            return false;
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            permit @ None => *permit = Some(more),
        }
        true
    }

    fn queue(&mut self, more: u32) -> Option<After> {
        let called = self.called.take()?;
        if self.permit.is_none() {
            // a refused call, or one of a log that never blocks
            self.permit = self.log.try_permits(self.weight.saturating_add(more));
        }
        self.log
            .send(called, self.permit.take())
            .map(After::Written)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(mut called) = self.called.take() else {
            return;
        };
        called.took = self.began.elapsed();
        called.at = time::now();
        let permit = self.permit.take();
        let permit = permit.or_else(|| self.log.try_permits(self.weight));
        // no answer waits
        let _: Option<oneshot::Receiver<()>> = self.log.send(called, permit);
    }
}

/// A step before a call is answered.
#[derive(Debug)]
pub(crate) enum After {
    /// Permits for a large result.
    Permits { watch: Box<Watch>, more: u32 },
    /// The write of the record.
    Written(oneshot::Receiver<()>),
}

impl After {
    pub(crate) async fn done(self) {
        let written = match self {
            Self::Written(written) => Some(written),
            Self::Permits { mut watch, more } => {
                // releases the permits first: the result may need the whole queue
                drop(watch.permit.take());
                let all = watch.weight.saturating_add(more);
                watch.permit = watch.log.permits(all).await;
                match watch.queue(0) {
                    Some(Self::Written(written)) => Some(written),
                    _ => None,
                }
            }
        };
        if let Some(written) = written {
            // an error here means that the log failed, and the call is over
            let _ = written.await;
        }
    }
}
