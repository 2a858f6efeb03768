//! Decides which calls are traced.

use callward_core::{InvalidConfig, ToolCall};
use tracing::{Level, Span};

use crate::names;

/// Decides which calls are traced, before any span of a call is built.
///
/// A call that continues a trace is traced if its caller records that trace: if the sampled flag of
/// its [`TraceContext`](callward_core::TraceContext) is set, or a `tracing` span surrounds the
/// call. A call that begins a trace is traced with the given probability. Servers get the same
/// decision, in the sampled flag of what they are sent.
///
/// ```
/// use callward_telemetry::Sampling;
///
/// let one_in_a_hundred = Sampling::ratio(0.01)?;
/// assert_ne!(one_in_a_hundred, Sampling::always());
/// # Ok::<(), callward_core::InvalidConfig>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sampling {
    /// A trace whose random number is below is not sampled.
    threshold: u64,
}

impl Sampling {
    /// Traces every call that begins a trace. This is the default; without a subscriber of
    /// `tracing` no call is traced.
    #[must_use]
    pub const fn always() -> Self {
        Self { threshold: 0 }
    }

    /// Traces this part of the calls that begin a trace, from 0 to 1. With 0, calls of callers that
    /// record their trace are still traced.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] if `ratio` is not from 0 to 1.
    pub fn ratio(ratio: f64) -> Result<Self, InvalidConfig> {
        if !(0.0..=1.0).contains(&ratio) {
            return Err(InvalidConfig::new("sampling", "is not from 0 to 1"));
        }
        // both ends are exact; the rest is rounded to one of 2^56 steps
        let threshold = ((1.0 - ratio) * NUMBERS as f64).round() as u64;
        Ok(Self { threshold })
    }

    /// Returns `true` if the call is traced.
    pub(crate) fn takes(self, call: &ToolCall) -> bool {
        if call.is_left_out {
            return false;
        }
        match &call.trace {
            Some(trace) => trace.is_sampled(),
            None if self.threshold == 0 => true,
            // a call within a span of this process belongs to its trace
            None if !Span::current().is_disabled() => true,
            None => fastrand::u64(..NUMBERS) >= self.threshold,
        }
    }
}

/// Returns `true` if a subscriber enables the spans.
pub(crate) fn is_enabled() -> bool {
    tracing::span_enabled!(target: names::TARGET, Level::INFO)
}

/// How many random numbers there are.
const NUMBERS: u64 = 1 << 56;

#[cfg(test)]
mod tests {
    use callward_testkit::{call, tool};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_root_call_is_sampled_by_the_ratio() {
        fastrand::seed(7);
        let root = call(&tool("x").build(), json!({}));
        for (ratio, least, most) in [
            (0.0, 0, 0),
            (0.01, 60, 140),
            (0.5, 4_800, 5_200),
            (1.0, 10_000, 10_000),
        ] {
            let sampling = Sampling::ratio(ratio).unwrap();
            let taken = (0..10_000).filter(|_| sampling.takes(&root)).count();
            assert!((least..=most).contains(&taken), "{taken} at {ratio}");
        }
        assert_eq!(Sampling::ratio(1.0), Ok(Sampling::always()));
        for ratio in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Sampling::ratio(ratio).is_err(), "{ratio}");
        }
    }
}
