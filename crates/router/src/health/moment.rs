//! Points in time, small enough for an atomic.

use std::time::Duration;

/// Milliseconds since the health of a set began to be counted; never 0, which stands for "not set".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Measures a duration; what is longer than can be told lasts for ever.
    pub(crate) fn of(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(Self::of(duration).0))
    }

    pub(crate) const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
