//! The pause before a retry.

use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::Writer;
use callward_core::{CallRecord, Reopening, ReplicaSetId, ToolCall, ToolError};
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, sleep_until};

use crate::budget::Place;
use crate::give::retried;

/// What is waited for before a retry.
#[derive(Debug)]
pub(crate) enum Pause {
    /// So long.
    For(Duration),
    /// For a breaker, or for a server that is expected back.
    Open(Open),
}

/// A breaker is waited for: it lets a call through after `time`, or as soon as it hears of its probe or
/// its server is back. Or the server itself is.
#[derive(Debug)]
pub(crate) struct Open {
    time: Duration,
    /// After that: all who were refused know the same moment, and they do not come all at once.
    spread: Duration,
    _place: Place,
}

impl Pause {
    /// Waits for a breaker for this time. Of those who wait for one set, two follow the first within a
    /// `step`, four within the next, and so on: if the server does not bear the first of them, the
    /// breaker opens again before the others come. `pause` is by chance, below a step at first.
    pub(crate) fn open(time: Duration, pause: Duration, step: Duration, place: Place) -> Self {
        let steps = place.ahead.saturating_add(1).ilog2();
        Self::Open(Open {
            time,
            spread: pause.saturating_add(step.saturating_mul(steps)),
            _place: place,
        })
    }

    /// Ends the wait for a breaker so early that there is `need` left until the deadline, `left` away.
    pub(crate) fn within(self, left: Option<Duration>, need: Duration) -> Self {
        match (self, left) {
            (Self::Open(open), Some(left)) => {
                let latest = left.saturating_sub(open.spread).saturating_sub(need);
                let time = open.time.min(latest);
                Self::Open(Open { time, ..open })
            }
            (pause, _) => pause,
        }
    }

    /// Returns how long it takes at most.
    pub(crate) const fn longest(&self) -> Duration {
        match self {
            Self::For(pause) => *pause,
            Self::Open(open) => open.longest(),
        }
    }
}

impl Open {
    pub(crate) const fn longest(&self) -> Duration {
        self.time.saturating_add(self.spread)
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
    _open: Open,
}

impl Waiting {
    /// Begins to wait with a call whose attempt a breaker refused.
    pub(crate) fn begin(call: &ToolCall, refusal: &ToolError, open: Open) -> Self {
        Self {
            began: Instant::now(),
            refusal: refusal.clone(),
            record: call.record().cloned(),
            writer: Writer::of(call),
            _open: open,
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
            writer.decided(|| retried(&self.refusal, waited));
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

    /// Waits for a breaker of the set until its time is over, there is news of it, or a server of the
    /// set is back; and then for the spread of `open`, in any case.
    pub(crate) fn wait(
        &self,
        set: &ReplicaSetId,
        open: &Open,
        reopening: Option<&Reopening>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (mut returns, set) = (self.0.subscribe(), set.clone());
        let end = Instant::now().checked_add(open.longest());
        let (spread, reopening) = (open.spread, reopening.cloned());
        async move {
            let reopened = async move {
                match reopening {
                    Some(reopening) => reopening.reopened().await,
                    None => std::future::pending().await,
                }
            };
            let back = async move {
                tokio::select! {
                    () = async { while returns.recv().await.is_ok_and(|back| back != set) {} } => {}
                    () = reopened => {}
                }
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
    use crate::RetryConfig;
    use crate::budget::Budgets;

    const OPEN: Duration = Duration::from_secs(10);
    const SPREAD: Duration = Duration::from_millis(70);

    fn set(name: &str) -> ReplicaSetId {
        ReplicaSetId::new(name).unwrap()
    }

    fn open() -> Open {
        let budgets = Budgets::default();
        let place = budgets.queue(&set("a"), &RetryConfig::default());
        match Pause::open(OPEN, SPREAD, SPREAD, place) {
            Pause::Open(open) => open,
            Pause::For(_) => unreachable!(),
        }
    }

    async fn waited(tell: impl AsyncFnOnce(&Returns)) -> Duration {
        let returns = Returns::default();
        let start = Instant::now();
        let wait = returns.wait(&set("a"), &open(), None);
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
