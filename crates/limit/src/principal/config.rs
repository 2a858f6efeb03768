//! The settings of the limits of principals.

use std::num::NonZeroU32;

use callward_core::Effect;
use serde::{Deserialize, Serialize};

/// The limits of each principal. `None`, the default of each, sets no limit, unless limits are
/// [`generous`](Self::generous).
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
    /// Whether a limit that is not set has a value that no interactive agent reaches: 3,000 calls a
    /// minute, of these 600 writes and 120 destructive ones; 300 lists a minute; 48 calls in
    /// flight, of these 24 writes. So one principal does not take all 64 permits that a server has
    /// by default. Default: no.
    #[serde(skip)]
    pub generous: bool,
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

/// Those that a call counts against whose tool is unknown.
pub(super) const UNKNOWN: Counted = [true, false, false, false, false, false];

/// Returns the limits that a call of this effect counts against.
pub(super) const fn of_call(effect: Effect) -> Counted {
    let (write, destroys) = (effect.is_write(), matches!(effect, Effect::Destructive));
    [true, write, destroys, false, true, write]
}

impl PrincipalLimitConfig {
    /// Lists the limits that a call of this effect counts against, by name.
    pub fn of(&self, effect: Effect) -> impl Iterator<Item = (&'static str, NonZeroU32)> {
        let counted = self.named().into_iter().zip(of_call(effect));
        counted.filter_map(|((name, max), counts)| Some((name, max.filter(|_| counts)?)))
    }

    /// Returns all limits by name, rates first.
    pub(super) fn named(&self) -> [(&'static str, Option<NonZeroU32>); LIMITS] {
        let limits = [
            ("calls_per_minute", self.calls_per_minute, 3000),
            ("writes_per_minute", self.writes_per_minute, 600),
            ("destructive_per_minute", self.destructive_per_minute, 120),
            ("lists_per_minute", self.lists_per_minute, 300),
            ("concurrent", self.concurrent, 48),
            ("concurrent_writes", self.concurrent_writes, 24),
        ];
        let generous = |max| NonZeroU32::new(max).filter(|_| self.generous);
        limits.map(|(name, max, unset)| (name, max.or_else(|| generous(unset))))
    }
}
