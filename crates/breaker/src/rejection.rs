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
    is_write_held: bool,
}

impl Rejection {
    pub(crate) const fn new(
        state: BreakerState,
        last_trip: Option<Arc<str>>,
        time_to_probe: Option<Duration>,
        is_write_held: bool,
    ) -> Self {
        Self {
            state,
            last_trip,
            time_to_probe,
            is_write_held,
        }
    }

    /// Returns how long until a probe is admitted at the latest; `None` while an operator holds the
    /// breaker open. Where only a write was held back: how long until a write may be the probe.
    #[must_use]
    pub const fn time_to_probe(&self) -> Option<Duration> {
        self.time_to_probe
    }

    /// Returns when it is worth asking again: while a probe is in flight, soon.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let is_probed = self.state == BreakerState::HalfOpen && !self.is_write_held;
        let wait = self.time_to_probe?;
        Some(if is_probed {
            wait.min(PROBE_WAIT)
        } else {
            wait
        })
    }

    /// Returns why the call was refused, without the server's own words.
    pub(crate) const fn why(&self) -> &'static str {
        match self.state {
            BreakerState::ForcedOpen => "an operator holds its breaker open",
            _ if self.is_write_held => "its breaker is due for a probe, and this call is a write",
            BreakerState::HalfOpen => "its breaker is waiting for the outcome of a probe",
            _ => "its breaker is open",
        }
    }
}

/// How long a caller waits for the outcome of a probe before it asks again.
const PROBE_WAIT: Duration = Duration::from_secs(1);

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())?;
        if let Some(reason) = &self.last_trip {
            write!(f, " (opened after {reason})")?;
        }
        match self.time_to_probe {
            Some(wait) if self.is_write_held => write!(
                f,
                "; admitted in {:.1} s, or as soon as a safe call succeeds",
                wait.as_secs_f64()
            ),
            Some(wait) => write!(f, "; next probe in {:.1} s", wait.as_secs_f64()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejection {}
