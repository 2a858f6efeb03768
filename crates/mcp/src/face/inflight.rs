//! The calls of one conversation that may still be cancelled, by request id.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

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
}

#[derive(Debug)]
struct Entry {
    ticket: u64,
    token: CancellationToken,
}

impl InFlight {
    /// Notes a call under its id until the guard is dropped; `token` is what a cancellation
    /// fires. A client that uses an id twice can only cancel the later call.
    pub(super) fn enter(self: &Arc<Self>, id: &RequestId, token: CancellationToken) -> Entered {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        state.calls.insert(
            id.clone(),
            Entry {
                ticket,
                token: token.clone(),
            },
        );
        Entered {
            calls: Arc::clone(self),
            id: id.clone(),
            ticket,
            token,
        }
    }

    /// Cancels the call of this id, if there is one.
    pub(super) fn cancel(&self, id: &RequestId) {
        let found = self.state.lock().calls.remove(id);
        if let Some(entry) = found {
            entry.token.cancel();
        }
    }
}

/// A call's place among those in flight; dropping it gives the place up.
#[derive(Debug)]
pub(super) struct Entered {
    calls: Arc<InFlight>,
    id: RequestId,
    ticket: u64,
    token: CancellationToken,
}

impl Entered {
    /// Waits until the client cancels the call.
    pub(super) async fn cancelled(&self) {
        self.token.cancelled().await;
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
    fn the_count_returns_to_zero() {
        let calls = Arc::new(InFlight::default());
        let id = RequestId::string("a");
        let first = calls.enter(&id, CancellationToken::new());
        let again = calls.enter(&id, CancellationToken::new());
        drop(first);
        assert_eq!(
            calls.state.lock().calls.len(),
            1,
            "the later call still holds the id"
        );
        calls.cancel(&id);
        assert!(again.token.is_cancelled());
        drop(again);
        assert_eq!(calls.state.lock().calls.len(), 0);
    }

    #[test]
    fn a_number_and_its_text_are_different_ids() {
        let calls = Arc::new(InFlight::default());
        let number = calls.enter(&RequestId::number(1), CancellationToken::new());
        calls.cancel(&RequestId::string("1"));
        assert!(!number.token.is_cancelled());
    }
}
