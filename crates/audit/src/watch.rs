//! A call that leaves a record.

use callward_core::{CallRecord, Delivery, ErrorKind, ToolCall, ToolError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::event::{Called, Event};
use crate::service::Answer;
use crate::{AuditLog, time};

/// Follows a call to its end. Dropped before its end, it records a cancelled call.
#[derive(Debug)]
pub(crate) struct Watch {
    log: AuditLog,
    call: ToolCall,
    began: Instant,
    weight: u32,
    permit: Option<OwnedSemaphorePermit>,
    /// The call once it has ended.
    ended: Option<Box<Called>>,
    is_queued: bool,
}

/// Bytes of arguments or result per additional permit.
const BYTES_PER_PERMIT: usize = 16 << 10;

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes / BYTES_PER_PERMIT).unwrap_or(u32::MAX)
}

impl Watch {
    /// Begins to follow a call, and adds a [`CallRecord`] if it has none.
    pub(crate) fn begin(log: AuditLog, mut call: ToolCall) -> (ToolCall, Self) {
        call.ensure_record(CallRecord::for_counting);
        let watch = Self {
            log,
            call: call.clone(),
            began: Instant::now(),
            weight: permits(call.arguments().len()).saturating_add(1),
            permit: None,
            ended: None,
            is_queued: false,
        };
        (call, watch)
    }

    /// Takes permits if the call needs them, and waits for them if the queue is full.
    ///
    /// # Errors
    ///
    /// If the deadline passes, or the log cannot be written.
    pub(crate) async fn enter(&mut self) -> Result<(), ToolError> {
        let rule = self.call.plan().audit;
        self.log.admit(rule)?;
        if !self.log.blocks() {
            // a permit is taken at the end of the call
            return Ok(());
        }
        self.permit = self.log.try_permits(self.weight);
        if self.permit.is_some() {
            return Ok(());
        }
        let permit = self.log.permits(self.weight);
        self.permit = match self.call.deadline {
            None => permit.await,
            Some(deadline) => tokio::time::timeout_at(deadline.into(), permit)
                .await
                .map_err(|_| {
                    ToolError::new(
                        ErrorKind::DeadlineExceeded,
                        Delivery::NotSent,
                        "the call needs an audit record, and the queue of the log was full until \
                         the deadline",
                    )
                })?,
        };
        self.log.admit(rule)
    }

    /// Records the refusal of the call. Its answer does not wait.
    pub(crate) fn refuse(mut self, error: ToolError) -> Answer {
        self.ended = Some(self.called(Some(Err(error.clone()))));
        Err(error)
    }

    /// Records the call when it has an answer, and returns that once it may.
    pub(crate) async fn follow(mut self, answer: impl Future<Output = Answer>) -> Answer {
        // dropped before the rest: the inner future still updates the record
        let result = answer.await;
        let more = permits(result.as_ref().map_or(0, |output| output.body().len()));
        let all = self.weight.saturating_add(more);
        self.ended = Some(self.called(Some(result.clone())));
        if more > 0 && self.log.blocks() {
            match (self.log.try_permits(more), &mut self.permit) {
                (Some(more), Some(permit)) => permit.merge(more),
                (Some(more), permit) => *permit = Some(more),
                (None, permit) => {
                    // releases the permits first: the result may need the whole queue
                    drop(permit.take());
                    self.permit = self.log.permits(all).await;
                }
            }
        }
        if let Some(written) = self.queue(all) {
            // it ends when the record is written, or cannot be: the call is over
            let _ = written.await;
        }
        result
    }

    /// Returns the call as it ends now.
    fn called(&self, answer: Option<Answer>) -> Box<Called> {
        Box::new(Called {
            at: time::now(),
            took: self.began.elapsed(),
            call: self.call.clone(),
            answer,
        })
    }

    /// Queues the record. The answer waits for the returned receiver.
    fn queue(&mut self, permits: u32) -> Option<oneshot::Receiver<()>> {
        if std::mem::replace(&mut self.is_queued, true) {
            return None;
        }
        let called = self.ended.take().unwrap_or_else(|| self.called(None));
        let permit = self.permit.take();
        // none yet: a refused call, or one of a log that never blocks
        let permit = permit.or_else(|| self.log.try_permits(permits));
        self.log.send(Event::Call(called), permit)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // no answer waits
        let _: Option<oneshot::Receiver<()>> = self.queue(self.weight);
    }
}
