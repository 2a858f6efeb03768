//! What is still to happen that nobody waits for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// Counts what is still to happen. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Pending(Arc<watch::Sender<u64>>);

impl Pending {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Does something after a while, on nobody's behalf.
    pub(crate) fn later(&self, after: Duration, act: impl FnOnce() + Send + 'static) {
        let running = self.begin();
        tokio::spawn(async move {
            sleep(after).await;
            act();
            drop(running);
        });
    }

    /// Counts something that happens now, until the guard is dropped.
    pub(crate) fn begin(&self) -> Running {
        self.0.send_modify(|count| *count += 1);
        Running(self.0.clone())
    }

    /// Waits until nothing is left.
    pub(crate) async fn settled(&self) {
        let mut pending = self.0.subscribe();
        // the sender is in our hands, so this ends only when the count is zero
        let _ = pending.wait_for(|count| *count == 0).await;
    }
}

/// One thing that happens.
pub(crate) struct Running(Arc<watch::Sender<u64>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
