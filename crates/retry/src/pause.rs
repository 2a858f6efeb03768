//! The pause before a repeat.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, sleep_until};
use tollgate_core::trail::Writer;
use tollgate_core::{CallRecord, ReplicaSetId, ToolCall, ToolError};

use crate::give::repeated;

/// What is waited for before a repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pause {
    /// So long.
    For(Duration),
    /// For a breaker: it lets a call through after `open`, or as soon as its server is back.
    Open { open: Duration, spread: Duration },
}

impl Pause {
    /// Returns how long it takes at most.
    pub(crate) const fn longest(self) -> Duration {
        match self {
            Self::For(pause) => pause,
            Self::Open { open, spread } => open.saturating_add(spread),
        }
    }
}

/// A call that waits for a breaker. Dropped, at the end of the pause or of the call, it writes down how
/// long that was: nobody knows before.
#[derive(Debug)]
pub(crate) struct Waiting {
    began: Instant,
    refusal: ToolError,
    record: Option<Arc<CallRecord>>,
    writer: Option<Writer>,
}

impl Waiting {
    /// Begins to wait with a call whose attempt a breaker refused.
    pub(crate) fn begin(call: &ToolCall, refusal: &ToolError) -> Self {
        Self {
            began: Instant::now(),
            refusal: refusal.clone(),
            record: call.record().cloned(),
            writer: Writer::of(call),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waited = self.began.elapsed();
        if let Some(record) = &self.record {
            record.spent().add_pause(waited);
        }
        if let Some(writer) = &self.writer {
            writer.decided(|| repeated(&self.refusal, waited));
        }
    }
}

/// So many returns of servers are remembered for calls that are just being woken. A call that missed
/// some tries: it may have missed its own.
const REMEMBERED: usize = 64;

/// Tells calls that wait for a breaker that a server is back.
#[derive(Debug)]
pub(crate) struct Returns(broadcast::Sender<ReplicaSetId>);

impl Default for Returns {
    fn default() -> Self {
        Self(broadcast::Sender::new(REMEMBERED))
    }
}

impl Returns {
    /// Says that a server of this set is back, and its breakers are closed.
    pub(crate) fn tell(&self, set: &ReplicaSetId) {
        // nobody waits, mostly
        let _waiting = self.0.send(set.clone());
    }

    /// Waits for a breaker of the set: `spread`, and then `open`, or until a server of the set is back.
    ///
    /// `spread` is waited for in either case: all calls that were refused know of the same moment, and
    /// they are not to come at once.
    pub(crate) fn wait(
        &self,
        set: &ReplicaSetId,
        open: Duration,
        spread: Duration,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (mut returns, set) = (self.0.subscribe(), set.clone());
        let end = Instant::now().checked_add(open.saturating_add(spread));
        async move {
            let back = async move {
                while returns.recv().await.is_ok_and(|back| back != set) {}
                sleep(spread).await;
            };
            let over = async {
                match end {
                    Some(end) => sleep_until(end).await,
                    // beyond what the clock can say
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = back => {}
                () = over => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_secs(10);
    const SPREAD: Duration = Duration::from_millis(70);

    fn set(name: &str) -> ReplicaSetId {
        ReplicaSetId::new(name).unwrap()
    }

    async fn waited(tell: impl AsyncFnOnce(&Returns)) -> Duration {
        let returns = Returns::default();
        let start = Instant::now();
        let wait = returns.wait(&set("a"), OPEN, SPREAD);
        tokio::join!(wait, tell(&returns));
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_back_before_the_breaker_lets_a_call_through() {
        assert_eq!(waited(async |_| {}).await, OPEN + SPREAD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_back_ends_the_wait_of_its_set_alone() {
        let own = async |returns: &Returns| {
            sleep(Duration::from_secs(1)).await;
            returns.tell(&set("a"));
        };
        assert_eq!(waited(own).await, Duration::from_secs(1) + SPREAD);
        let other = async |returns: &Returns| {
            sleep(Duration::from_secs(1)).await;
            returns.tell(&set("b"));
        };
        assert_eq!(waited(other).await, OPEN + SPREAD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_return_at_the_end_makes_no_wait_longer() {
        let late = async |returns: &Returns| {
            sleep(OPEN + SPREAD / 2).await;
            returns.tell(&set("a"));
        };
        assert_eq!(waited(late).await, OPEN + SPREAD);
    }

    #[tokio::test(start_paused = true)]
    async fn who_missed_returns_tries() {
        let flood = async |returns: &Returns| {
            for _ in 0..=REMEMBERED {
                returns.tell(&set("b"));
            }
        };
        assert_eq!(waited(flood).await, SPREAD);
    }
}
