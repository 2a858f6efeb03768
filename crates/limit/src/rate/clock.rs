//! Governor's clock on tokio's time, which tests can pause.

use std::time::Duration;

use governor::clock::Clock;
use tokio::time::Instant;

/// Reads the time since it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock(Instant);

impl TokioClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
