//! The requests in flight, for what comes on another stream than theirs.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::client::ask;
use crate::client::asked::{Meant, Recipients};

/// Who gets what belongs to each request in flight: some legacy servers send everything on the
/// stream of the session.
#[derive(Default)]
pub(super) struct Reports(Mutex<HashMap<u64, Recipients>>);

impl Reports {
    pub(super) fn enter(&self, id: u64, recipients: Recipients) {
        self.0.lock().insert(id, recipients);
    }

    /// Returns which client a message is for that does not name its call.
    pub(super) fn meant(&self) -> Meant {
        let in_flight = self.0.lock();
        Meant::among(in_flight.iter().map(|(id, recipients)| (*id, recipients)))
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
