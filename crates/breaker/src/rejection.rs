//! Why a breaker refused a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::BreakerState;

/// Why a breaker refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    state: BreakerState,
    last_trip: Option<Arc<str>>,
    time_to_probe: Option<Duration>,
}

impl Rejection {
    pub(crate) const fn new(
        state: BreakerState,
        last_trip: Option<Arc<str>>,
        time_to_probe: Option<Duration>,
    ) -> Self {
        Self {
            state,
            last_trip,
            time_to_probe,
        }
    }

    /// Returns the breaker's state: open, half open with all probes out, or forced open.
    #[must_use]
    pub const fn state(&self) -> BreakerState {
        self.state
    }

    /// Returns why the breaker opened last.
    #[must_use]
    pub fn last_trip(&self) -> Option<&str> {
        self.last_trip.as_deref()
    }

    /// Returns how long until a probe is let through, at the latest; `None` if only an operator can
    /// tell.
    #[must_use]
    pub const fn time_to_probe(&self) -> Option<Duration> {
        self.time_to_probe
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            BreakerState::ForcedOpen => "an operator holds its breaker open",
            BreakerState::HalfOpen => "its breaker is waiting for the outcome of a probe",
            _ => "its breaker is open",
        })?;
        if let Some(reason) = &self.last_trip {
            write!(f, " (opened after {reason})")?;
        }
        if let Some(wait) = self.time_to_probe {
            write!(f, "; next probe in {:.1} s", wait.as_secs_f64())?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejection {}
