//! The calls of one conversation that may still be cancelled, by request id.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{AbortHandle, Abortable, Pending, pending};
use parking_lot::Mutex;

use crate::wire::RequestId;

/// The calls of one conversation that may still be cancelled.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    calls: HashMap<RequestId, Entry>,
    /// The conversation has ended, and so does each call that begins now.
    has_ended: bool,
}

#[derive(Debug)]
struct Entry {
    ticket: u64,
    call: AbortHandle,
}

impl InFlight {
    /// Notes a call under its id until the guard is dropped. A client that uses an id twice can
    /// only cancel the later call.
    pub(super) fn enter(self: &Arc<Self>, id: &RequestId) -> Entered {
        let (call, registration) = AbortHandle::new_pair();
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        if state.has_ended {
            call.abort();
        }
        state.calls.insert(id.clone(), Entry { ticket, call });
        Entered {
            calls: Arc::clone(self),
            id: id.clone(),
            ticket,
            cancelled: Abortable::new(pending(), registration),
        }
    }

    /// Cancels the call of this id, if there is one.
    pub(super) fn cancel(&self, id: &RequestId) {
        let found = self.state.lock().calls.remove(id);
        if let Some(entry) = found {
            entry.call.abort();
        }
    }

    /// Cancels all calls, and those to come.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.has_ended = true;
        for entry in state.calls.values() {
            entry.call.abort();
        }
    }
}

/// A call in flight, until this is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    calls: Arc<InFlight>,
    id: RequestId,
    ticket: u64,
    cancelled: Abortable<Pending<()>>,
}

impl Entered {
    /// Waits until the client cancels the call, or the conversation ends.
    pub(super) async fn cancelled(&mut self) {
        let _aborted = (&mut self.cancelled).await;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.calls.state.lock();
        // the id may have been used again meanwhile: only our own entry goes
        if state
            .calls
            .get(&self.id)
            .is_some_and(|entry| entry.ticket == self.ticket)
        {
            state.calls.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancellation_reaches_the_latest_call_of_its_id() {
        let calls = Arc::new(InFlight::default());
        let id = RequestId::string("a");
        let first = calls.enter(&id);
        let again = calls.enter(&id);
        let count = || calls.state.lock().calls.len();
        drop(first);
        assert_eq!(count(), 1, "the later call still holds the id");
        calls.cancel(&id);
        assert!(again.cancelled.is_aborted());
        drop(again);
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_number_and_its_text_are_different_ids() {
        let calls = Arc::new(InFlight::default());
        let number = calls.enter(&RequestId::number(1));
        calls.cancel(&RequestId::string("1"));
        assert!(!number.cancelled.is_aborted());
    }

    #[tokio::test]
    async fn calls_end_with_their_conversation() {
        let calls = Arc::new(InFlight::default());
        let mut before = calls.enter(&RequestId::number(1));
        let mut cancelled = Box::pin(before.cancelled());
        assert!(futures_util::poll!(&mut cancelled).is_pending());
        calls.end();
        cancelled.await;
        calls.enter(&RequestId::number(2)).cancelled().await;
    }
}
