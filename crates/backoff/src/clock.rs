//! The clock that everything else here goes by.

use std::time::Instant;

use backoff::Clock;

/// Tokio's clock, which tests can pause. Needs a tokio runtime only where a test paused it.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}
