//! One limit. It holds for each principal; what is counted for one is kept apart.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, LimitReached, ToolError};

/// When a call may be made again that found too many others in flight, in nanoseconds: no one knows
/// when one of them ends.
const SOON: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * 1_000_000_000;

/// For how many nanoseconds a limit refuses, and until when it is as if unused, if that is known.
pub(super) type Full = (u64, Option<u64>);

/// One limit.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    /// `None` if there is no limit.
    max: Option<NonZeroU32>,
    /// Whether it is a rate; else it limits calls in flight.
    is_rate: bool,
    pub(super) refused: AtomicU64,
}

impl Limit {
    pub(super) fn new(name: &'static str, max: Option<NonZeroU32>) -> Self {
        Self {
            name,
            max,
            is_rate: name.ends_with("_per_minute"),
            refused: AtomicU64::new(0),
        }
    }

    /// Counts one more, and returns the new count: of a rate, the time at which its bucket would be
    /// complete again, in nanoseconds; else the calls in flight.
    ///
    /// The rates are not governor's: it cannot take from several limits in one step, and a call
    /// that one limit refuses must not use up another.
    pub(super) fn add(&self, count: u64, now: u64) -> Result<u64, Full> {
        let Some(max) = self.max.map(|max| u64::from(max.get())) else {
            return Ok(count);
        };
        if !self.is_rate {
            return (count < max).then_some(count + 1).ok_or((SOON, None));
        }
        // in which one token comes
        let period = MINUTE.div_ceil(max);
        let complete = count.max(now);
        let next = complete.saturating_add(period);
        match (next - now).saturating_sub(period * max) {
            0 => Ok(next),
            wait => Err((wait, Some(complete - now))),
        }
    }

    /// Counts a refusal and returns its error.
    pub(super) fn refuse(&self, (wait, reset): Full) -> ToolError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let max = self.max.map_or(0, NonZeroU32::get);
        let (name, wait) = (self.name, to_millis(wait));
        let text = format!(
            "the limit `{name}` of {max} for each principal is reached; nothing was sent, call \
             again in {wait:?}"
        );
        let error = ToolError::new(ErrorKind::RateLimited, Delivery::NotSent, text);
        let mut error = error.with_retry_after(wait);
        error.limit = Some(LimitReached {
            name,
            max,
            reset: reset.map(to_millis),
        });
        error
    }
}

/// Rounds up: who comes again a moment too early is refused again.
const fn to_millis(nanos: u64) -> Duration {
    Duration::from_millis(nanos.div_ceil(1_000_000))
}
