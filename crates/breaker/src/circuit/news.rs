//! What whoever was refused in front of a probe waits for.

use std::sync::Arc;

use callward_core::{BoxFuture, Reopening, Reopens};

use super::Circuit;

/// The first news of a breaker after those that were known when it refused a call: its probe ended,
/// well or not, or it was closed.
pub(crate) struct News {
    circuit: Arc<Circuit>,
    seen: u64,
}

impl News {
    pub(crate) fn of(circuit: &Arc<Circuit>, seen: u64) -> Reopening {
        let circuit = circuit.clone();
        Reopening::new(Self { circuit, seen })
    }
}

impl Circuit {
    /// Waits until there is other news than whoever was refused has seen.
    pub(crate) async fn news_after(&self, seen: u64) {
        loop {
            // made before the look, so that no news falls between the two
            let changed = self.changed.notified();
            if self.guarded.lock().news != seen {
                return;
            }
            changed.await;
        }
    }
}

impl Reopens for News {
    fn reopened(&self) -> BoxFuture<'static, ()> {
        let (circuit, seen) = (self.circuit.clone(), self.seen);
        Box::pin(async move { circuit.news_after(seen).await })
    }
}
