//! Why a breaker refused a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::BreakerState;

/// Why a breaker refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection(
    /// Boxed, as it travels in a result beside the permit that nearly every call gets.
    Box<Why>,
);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Why {
    state: BreakerState,
    last_trip: Option<Arc<str>>,
    time_to_probe: Option<Duration>,
    is_no_probe: bool,
    /// The news that were known then, where a probe is waited for.
    news: Option<u64>,
}

impl Rejection {
    pub(crate) fn new(
        state: BreakerState,
        last_trip: Option<Arc<str>>,
        time_to_probe: Option<Duration>,
        is_no_probe: bool,
        news: Option<u64>,
    ) -> Self {
        Self(Box::new(Why {
            state,
            last_trip,
            time_to_probe,
            is_no_probe,
            news,
        }))
    }

    /// Returns the breaker's state: open, half open with all probes out, or forced open. Where only a
    /// write was held back, it may also be half open with a place left, or open and due.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.0.state
    }

    /// Returns why the breaker opened last.
    #[must_use]
    pub fn last_trip(&self) -> Option<&str> {
        self.0.last_trip.as_deref()
    }

    /// Returns how long until a probe is let through, at the latest; `None` if only an operator can
    /// tell. Where a probe is due and only a write was held back: how long until a write may be one.
    #[must_use]
    pub fn time_to_probe(&self) -> Option<Duration> {
        self.0.time_to_probe
    }

    /// Returns the news of the breaker that were known then, where the outcome of a probe is waited for.
    pub(crate) fn news(&self) -> Option<u64> {
        self.0.news
    }

    /// Says why the call was refused, without what the server said.
    pub(crate) fn why(&self) -> &'static str {
        match self.0.state {
            BreakerState::ForcedOpen => "an operator holds its breaker open",
            _ if self.0.is_no_probe => "its breaker is due for a probe, and this call is a write",
            BreakerState::HalfOpen => "its breaker is waiting for the outcome of a probe",
            _ => "its breaker is open",
        }
    }

    /// Says whether a safe call would have been let through in the place of this write.
    #[must_use]
    pub fn is_no_probe(&self) -> bool {
        self.0.is_no_probe
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())?;
        if let Some(reason) = &self.0.last_trip {
            write!(f, " (opened after {reason})")?;
        }
        match self.0.time_to_probe {
            Some(wait) if self.0.is_no_probe => write!(
                f,
                "; let through in {:.1} s, or as soon as a safe call succeeds",
                wait.as_secs_f64()
            ),
            Some(wait) => write!(f, "; next probe in {:.1} s", wait.as_secs_f64()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejection {}
