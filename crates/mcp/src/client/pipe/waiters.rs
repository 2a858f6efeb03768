//! Which call waits for which answer, and how far each request got.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::ProgressSink;
use tokio::sync::oneshot;

use crate::client::answer::RequestError;
use crate::client::asked::{Meant, Recipients};

/// What a request ends with.
pub(super) type Answer = Result<Bytes, RequestError>;

/// The requests in flight on one connection.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: HashMap<u64, Waiter>,
    /// Whether no further requests are taken.
    pub(super) closing: bool,
}

struct Waiter {
    answer: oneshot::Sender<Answer>,
    recipients: Recipients,
    written: Written,
}

/// How much of a request the server may have been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Not one byte.
    Nothing,
    /// A part, and certainly no more than that.
    Part,
    /// All of it, perhaps.
    Whole,
}

impl Waiters {
    /// Adds a request; nothing if the connection is closing.
    pub(super) fn add(
        &mut self,
        id: u64,
        recipients: Recipients,
    ) -> Option<oneshot::Receiver<Answer>> {
        if self.closing {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        let waiter = Waiter {
            answer,
            recipients,
            written: Written::Nothing,
        };
        self.waiting.insert(id, waiter);
        Some(receiver)
    }

    /// Notes how much of a request is about to be written, or was in the end. Returns `false` if no
    /// caller waits for it any more.
    pub(super) fn mark(&mut self, id: u64, written: Written) -> bool {
        let waiter = self.waiting.get_mut(&id);
        waiter.map(|waiter| waiter.written = written).is_some()
    }

    /// Hands over an answer. Returns `false` if no caller waits for it.
    pub(super) fn answer(&mut self, id: u64, answer: Answer) -> bool {
        match self.waiting.remove(&id) {
            // the receiver may be dropped at this moment: then the answer is not needed
            Some(waiter) => waiter.answer.send(answer).is_ok(),
            None => false,
        }
    }

    /// Removes a request that no caller waits for. Returns `true` if the server may know of it.
    pub(super) fn forget(&mut self, id: u64) -> bool {
        self.waiting
            .remove(&id)
            .is_some_and(|waiter| waiter.written != Written::Nothing)
    }

    pub(super) fn progress(&self, id: u64) -> Option<Arc<dyn ProgressSink>> {
        self.waiting.get(&id)?.recipients.progress.clone()
    }

    /// Returns which client a message is for that does not name its call.
    pub(super) fn meant(&self) -> Meant {
        let waiting = self.waiting.iter();
        Meant::among(waiting.map(|(id, waiter)| (*id, &waiter.recipients)))
    }

    /// Fails all that wait: as lost if they may have been written whole, else as not sent.
    pub(super) fn fail_all(&mut self, reason: &str) {
        for (_, waiter) in self.waiting.drain() {
            let error = match waiter.written {
                Written::Nothing => {
                    RequestError::not_sent(format!("the connection broke before sending: {reason}"))
                }
                Written::Part => RequestError::cut_short(format!(
                    "the connection broke before the whole call was written: {reason}"
                )),
                Written::Whole => {
                    RequestError::lost(format!("the connection broke before an answer: {reason}"))
                }
            };
            let _ = waiter.answer.send(Err(error));
        }
    }
}
