//! Which calls are in flight.

use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Counts calls in flight. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inflight(TaskTracker);

impl Inflight {
    /// Counts one call until the token is dropped.
    pub(crate) fn enter(&self) -> TaskTrackerToken {
        self.0.token()
    }

    /// Returns how many calls are in flight.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Waits until none is.
    pub(crate) async fn ended(&self) {
        self.0.close();
        self.0.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_counts_until_its_token_goes() {
        let calls = Inflight::default();
        let token = calls.clone().enter();
        assert_eq!(calls.count(), 1);
        drop(token);
        calls.ended().await;
        assert_eq!(calls.count(), 0);
    }
}
