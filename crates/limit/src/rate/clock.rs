//! Governor's clock: tokio's, so that a paused one drives it.

use std::time::Duration;

use governor::clock::Clock;
use tokio::time::Instant;

/// Tells the time since it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock {
    epoch: Instant,
}

impl TokioClock {
    pub(crate) fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    /// Returns the moment that a reading stands for; `None` beyond what an instant can say.
    pub(crate) fn at(&self, reading: Duration) -> Option<Instant> {
        self.epoch.checked_add(reading)
    }
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}
