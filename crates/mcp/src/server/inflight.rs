//! The calls of one conversation that may still be cancelled, by request id.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::wire::RequestId;

/// The calls of one conversation that may still be cancelled.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Fired when the conversation ends: it cancels all calls, and those to come.
    pub(super) ended: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// The ticket of each call, and what cancels it.
    calls: HashMap<RequestId, (u64, CancellationToken)>,
}

impl InFlight {
    /// Notes a call under its id until the guard is dropped. A client that uses an id twice can
    /// only cancel the later call.
    pub(super) fn enter(self: &Arc<Self>, id: &RequestId) -> Entered {
        let cancelled = self.ended.child_token();
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        state.calls.insert(id.clone(), (ticket, cancelled.clone()));
        Entered {
            calls: Arc::clone(self),
            id: id.clone(),
            ticket,
            cancelled,
        }
    }

    /// Cancels the call of this id, if there is one.
    pub(super) fn cancel(&self, id: &RequestId) {
        let found = self.state.lock().calls.remove(id);
        if let Some((_, call)) = found {
            call.cancel();
        }
    }
}

/// A call in flight, until this is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    calls: Arc<InFlight>,
    id: RequestId,
    ticket: u64,
    cancelled: CancellationToken,
}

impl Entered {
    /// Waits until the client cancels the call, or the conversation ends.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Waits until the client cancels this very call.
    pub(super) async fn cancelled_by_id(&self) {
        self.cancelled().await;
        if self.calls.ended.is_cancelled() {
            pending::<()>().await;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.calls.state.lock();
        // the id may have been used again meanwhile: only our own entry goes
        if let Some(found) = state.calls.remove(&self.id)
            && found.0 != self.ticket
        {
            state.calls.insert(self.id.clone(), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancellation_reaches_the_latest_call_of_its_id() {
        let calls = Arc::new(InFlight::default());
        let id = RequestId::from_raw(r#""a""#).unwrap();
        let first = calls.enter(&id);
        let again = calls.enter(&id);
        let count = || calls.state.lock().calls.len();
        drop(first);
        assert_eq!(count(), 1, "the later call still holds the id");
        calls.cancel(&id);
        assert!(again.cancelled.is_cancelled());
        drop(again);
        assert_eq!(count(), 0);
    }
}
