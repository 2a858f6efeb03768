//! Progress that comes on another stream than its request's.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::ProgressSink;
use parking_lot::Mutex;

use crate::client::ask;

/// The receivers of progress, by request.
///
/// Some legacy servers send everything on the stream of the session.
#[derive(Default)]
pub(super) struct Reports(Mutex<HashMap<u64, Arc<dyn ProgressSink>>>);

impl Reports {
    pub(super) fn enter(&self, id: u64, sink: Arc<dyn ProgressSink>) {
        self.0.lock().insert(id, sink);
    }

    pub(super) fn leave(&self, id: u64) {
        self.0.lock().remove(&id);
    }

    /// Hands a report to its receiver, if there is one.
    pub(super) fn report(&self, params: &[u8]) {
        let sink = ask::progress_id(params).and_then(|id| self.0.lock().get(&id).cloned());
        if let Some(sink) = sink {
            sink.report(params); // outside of the lock: it is not our code
        }
    }
}
