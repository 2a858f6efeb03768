//! The settings of the limits of principals.

use std::num::NonZeroU32;

use callward_core::Effect;
use serde::{Deserialize, Serialize};

/// The limits of each principal. `None`, the default of each, is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PrincipalLimitConfig {
    /// Calls a minute.
    pub calls_per_minute: Option<NonZeroU32>,
    /// Calls a minute that may change something, destructive ones included.
    pub writes_per_minute: Option<NonZeroU32>,
    /// Destructive calls a minute.
    pub destructive_per_minute: Option<NonZeroU32>,
    /// Lists a minute: requests that ask what the server is or offers.
    pub lists_per_minute: Option<NonZeroU32>,
    /// Calls in flight.
    pub concurrent: Option<NonZeroU32>,
    /// Calls in flight that may change something, destructive ones included.
    pub concurrent_writes: Option<NonZeroU32>,
}

/// The number of limits.
pub(super) const LIMITS: usize = 6;
/// How many of them, the first ones, are rates.
pub(super) const RATES: usize = 4;

/// Which of the limits a request counts against, in the order of
/// [`named`](PrincipalLimitConfig::named).
pub(super) type Counted = [bool; LIMITS];

/// The one that a list counts against.
pub(super) const LIST: Counted = [false, false, false, true, false, false];

/// Returns the limits that a call of this effect counts against.
pub(super) const fn of_call(effect: Effect) -> Counted {
    let (write, destroys) = (effect.is_write(), matches!(effect, Effect::Destructive));
    [true, write, destroys, false, true, write]
}

impl PrincipalLimitConfig {
    /// Returns limits that no interactive agent reaches: 3,000 calls a minute, of these 600 writes
    /// and 120 destructive ones; 300 lists a minute; 48 calls in flight, of these 24 writes. So
    /// one principal does not take all 64 permits that a server has by default.
    #[must_use]
    pub const fn generous() -> Self {
        Self {
            calls_per_minute: NonZeroU32::new(3000),
            writes_per_minute: NonZeroU32::new(600),
            destructive_per_minute: NonZeroU32::new(120),
            lists_per_minute: NonZeroU32::new(300),
            concurrent: NonZeroU32::new(48),
            concurrent_writes: NonZeroU32::new(24),
        }
    }

    /// Takes each limit that is not set from others.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            calls_per_minute: self.calls_per_minute.or(others.calls_per_minute),
            writes_per_minute: self.writes_per_minute.or(others.writes_per_minute),
            destructive_per_minute: self
                .destructive_per_minute
                .or(others.destructive_per_minute),
            lists_per_minute: self.lists_per_minute.or(others.lists_per_minute),
            concurrent: self.concurrent.or(others.concurrent),
            concurrent_writes: self.concurrent_writes.or(others.concurrent_writes),
        }
    }

    /// Lists the limits that a call of this effect counts against, by name.
    pub fn of(&self, effect: Effect) -> impl Iterator<Item = (&'static str, NonZeroU32)> {
        let counted = self.named().into_iter().zip(of_call(effect));
        counted.filter_map(|((name, max), counts)| Some((name, max.filter(|_| counts)?)))
    }

    /// Returns all limits by name, rates first.
    pub(super) const fn named(&self) -> [(&'static str, Option<NonZeroU32>); LIMITS] {
        [
            ("calls_per_minute", self.calls_per_minute),
            ("writes_per_minute", self.writes_per_minute),
            ("destructive_per_minute", self.destructive_per_minute),
            ("lists_per_minute", self.lists_per_minute),
            ("concurrent", self.concurrent),
            ("concurrent_writes", self.concurrent_writes),
        ]
    }
}
