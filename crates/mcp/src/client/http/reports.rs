//! The requests in flight, for what comes on another stream than theirs.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::client::ask;
use crate::client::asked::{Behind, ClientOfCall};

/// What is behind each request in flight: some legacy servers send everything on the stream of the
/// session.
#[derive(Default)]
pub(super) struct Reports(Mutex<HashMap<u64, Behind>>);

impl Reports {
    pub(super) fn enter(&self, id: u64, behind: Behind) {
        if behind.progress.is_some() || behind.client.is_some() {
            self.0.lock().insert(id, behind);
        }
    }

    /// Returns the client that a server means.
    pub(super) fn client(&self) -> Option<ClientOfCall> {
        let in_flight = self.0.lock();
        let clients = in_flight.iter();
        let clients = clients.filter_map(|(id, behind)| Some((*id, behind.client.as_ref()?)));
        ClientOfCall::meant(clients)
    }

    pub(super) fn leave(&self, id: u64) {
        self.0.lock().remove(&id);
    }

    /// Hands a report to its receiver, if there is one.
    pub(super) fn report(&self, params: &[u8]) {
        let sink = ask::progress_id(params).and_then(|id| self.0.lock().get(&id)?.progress.clone());
        if let Some(sink) = sink {
            sink.report(params); // outside of the lock: it is not our code
        }
    }
}
