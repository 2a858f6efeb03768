//! Wakes the calls that wait for a request.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::RequestId;

/// Who waits for which request.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<RequestId, watch::Sender<()>>>);

impl Waiting {
    pub(crate) fn subscribe(&self, id: &RequestId) -> watch::Receiver<()> {
        self.0.lock().entry(id.clone()).or_default().subscribe()
    }

    pub(crate) fn wake(&self, id: &RequestId) {
        // those who go on waiting subscribe again
        if let Some(sender) = self.0.lock().remove(id) {
            let _ = sender.send(());
        }
    }

    /// Forgets requests that no call waits for.
    pub(crate) fn tidy(&self) {
        self.0
            .lock()
            .retain(|_, sender| sender.receiver_count() > 0);
    }
}
