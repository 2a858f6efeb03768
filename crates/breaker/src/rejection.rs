//! Why a breaker refused a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::BreakerState;

/// Why a breaker refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub(crate) state: BreakerState,
    pub(crate) last_trip: Option<Arc<str>>,
    /// Until a probe is admitted at the latest; `None` while an operator holds the breaker open.
    /// Where only a write was held back: until a write may be the probe.
    pub(crate) time_to_probe: Option<Duration>,
    pub(crate) is_write_held: bool,
}

impl Rejection {
    /// Returns when it is worth asking again: while a probe is in flight, soon.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let is_probed = self.state == BreakerState::HalfOpen && !self.is_write_held;
        let longest = if is_probed { PROBE_WAIT } else { Duration::MAX };
        Some(self.time_to_probe?.min(longest))
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
        let Some(wait) = self.time_to_probe else {
            return Ok(());
        };
        let wait = wait.as_secs_f64();
        if self.is_write_held {
            return write!(
                f,
                "; admitted in {wait:.1} s, or as soon as a safe call succeeds"
            );
        }
        write!(f, "; next probe in {wait:.1} s")
    }
}

impl std::error::Error for Rejection {}
