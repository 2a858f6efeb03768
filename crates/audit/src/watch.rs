//! A call that will leave a record.

use std::sync::Arc;

use callward_core::{CallRecord, ToolCall, ToolError, ToolOutput};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::event::{Called, Ending};
use crate::{AuditLog, time};

/// Watches a call to its end. Dropped before [`end`](Self::end), it was cancelled, and the record
/// says so.
#[derive(Debug)]
pub(crate) struct Watch {
    log: AuditLog,
    called: Option<Box<Called>>,
    began: Instant,
    deadline: Option<Instant>,
    weight: u32,
    place: Option<OwnedSemaphorePermit>,
}

/// Whether a call may be sent.
#[derive(Debug)]
pub(crate) enum Entry {
    Admit,
    Refuse(ToolError),
    /// There is no room for its record.
    Wait,
}

/// So many bytes of arguments or result take one more place.
const BYTES_A_PLACE: usize = 16 << 10;

fn places(bytes: usize) -> u32 {
    u32::try_from(bytes / BYTES_A_PLACE).unwrap_or(u32::MAX)
}

impl Watch {
    /// Begins to watch, and gives the call a [`CallRecord`] if it has none.
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
            weight: places(call.arguments().len()).saturating_add(1),
            place: None,
        };
        (call, Box::new(watch))
    }

    /// Decides whether the call may be sent, and takes its place if there is one.
    pub(crate) fn enter(&mut self) -> Entry {
        if let Err(error) = self.admit() {
            return Entry::Refuse(error);
        }
        if !self.log.blocks() {
            // its place is taken when it ends: there may be one by then
            return Entry::Admit;
        }
        self.place = self.log.try_place(self.weight);
        match self.place {
            Some(_) => Entry::Admit,
            None => Entry::Wait,
        }
    }

    fn admit(&self) -> Result<(), ToolError> {
        let called = self.called.as_ref();
        called.map_or(Ok(()), |called| self.log.admit(called.rule))
    }

    /// Waits until there is room for the record.
    ///
    /// # Errors
    ///
    /// If the deadline passes, or the log could not be written meanwhile.
    pub(crate) async fn wait(&mut self) -> Result<(), ToolError> {
        let place = self.log.place(self.weight);
        self.place = match self.deadline {
            None => place.await,
            Some(deadline) => tokio::time::timeout_at(deadline, place)
                .await
                .map_err(|_| AuditLog::no_room())?,
        };
        self.admit()
    }

    /// Hands the record over. What is returned has to be waited for before the call is answered.
    pub(crate) fn end(
        mut self: Box<Self>,
        result: &Result<ToolOutput, ToolError>,
    ) -> Option<After> {
        let ending = match result {
            Ok(output) => Ending::Answered(output.clone()),
            Err(error) => Ending::Failed(error.clone()),
        };
        let more = places(ending.bytes());
        if let Some(called) = &mut self.called {
            called.ending = ending;
            called.at = time::now();
            called.took = self.began.elapsed();
        }
        if self.log.blocks() && more > 0 && !self.grow(more) {
            return Some(After::Room { watch: self, more });
        }
        self.hand_over(more)
    }

    /// Takes more places for a large result, if there are so many.
    fn grow(&mut self, more: u32) -> bool {
        let room = self.log.try_place(more);
        let fits = room.is_some();
        self.take(room);
        fits
    }

    fn take(&mut self, room: Option<OwnedSemaphorePermit>) {
        match (&mut self.place, room) {
            (Some(place), Some(room)) => place.merge(room),
            (place @ None, room) => *place = room,
            (Some(_), None) => {}
        }
    }

    fn hand_over(&mut self, more: u32) -> Option<After> {
        let called = self.called.take()?;
        if self.place.is_none() {
            // of a call that did not wait: one that is refused, or any where none waits
            self.place = self.log.try_place(self.weight.saturating_add(more));
        }
        self.log.send(called, self.place.take()).map(After::Written)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(mut called) = self.called.take() else {
            return;
        };
        called.took = self.began.elapsed();
        called.at = time::now();
        let place = self.place.take();
        let place = place.or_else(|| self.log.try_place(self.weight));
        // nobody is there to be answered
        let _: Option<oneshot::Receiver<()>> = self.log.send(called, place);
    }
}

/// What has to be waited for before a call is answered.
#[derive(Debug)]
pub(crate) enum After {
    /// Room for a large result.
    Room { watch: Box<Watch>, more: u32 },
    /// The record.
    Written(oneshot::Receiver<()>),
}

impl After {
    pub(crate) async fn done(self) {
        let written = match self {
            Self::Written(written) => Some(written),
            Self::Room { mut watch, more } => {
                // a place that is held could wait for itself: a result may be as large as the queue
                let held = watch.place.take();
                drop(held);
                let all = watch.weight.saturating_add(more);
                watch.place = watch.log.place(all).await;
                match watch.hand_over(0) {
                    Some(Self::Written(written)) => Some(written),
                    _ => None,
                }
            }
        };
        if let Some(written) = written {
            // a log that cannot be written is told by other means: the call is over
            let _ = written.await;
        }
    }
}
