//! What a call needs to know of a breaker, in one word that is read without a lock.

use crate::state::{State, Ticket};
use crate::{BreakerState, Risk, Verdict};

/// The generation in the upper half; in the lower the failures known, and one of the tags below with a
/// mark beside it.
#[derive(Clone, Copy)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// Closed, no failures.
    const CLEAN: u64 = 0;
    /// Closed, with failures.
    const MARKED: u64 = 1;
    /// Forced closed.
    const HELD: u64 = 2;
    /// Closed, and each outcome is written down.
    const TALLIED: u64 = 3;
    /// Anything else: the lock knows.
    const ASK: u64 = 4;
    const TAGS: u64 = 0xFF;
    /// A safe call was let through.
    const SAFE: u64 = 0x100;

    pub(crate) fn of(state: &State) -> Self {
        let tag = match state.state() {
            BreakerState::Closed if state.tallies() => Self::TALLIED,
            BreakerState::Closed if state.failures() == 0 => Self::CLEAN,
            BreakerState::Closed => Self::MARKED,
            BreakerState::ForcedClosed => Self::HELD,
            BreakerState::ForcedOpen | BreakerState::HalfOpen | BreakerState::Open => Self::ASK,
        };
        let mark = if state.had_safe_calls() {
            Self::SAFE
        } else {
            0
        };
        let Ticket { generation, known } = state.ticket();
        Self(u64::from(generation) << 32 | u64::from(known) << 16 | mark | tag)
    }

    #[inline]
    const fn tag(self) -> u64 {
        self.0 & Self::TAGS
    }

    #[inline]
    pub(crate) const fn ticket(self) -> Ticket {
        Ticket {
            generation: (self.0 >> 32) as u32,
            known: (self.0 >> 16) as u16,
        }
    }

    #[inline]
    pub(crate) const fn lets_all_through(self) -> bool {
        self.tag() != Self::ASK
    }

    /// Says whether such a call is let through and changes nothing by it: all but the first safe one,
    /// which is remembered.
    #[inline]
    pub(crate) fn lets_through(self, risk: Risk) -> bool {
        self.lets_all_through() && (risk == Risk::Write || self.0 & Self::SAFE != 0)
    }

    /// Says whether an outcome would change nothing.
    #[inline]
    pub(crate) const fn is_indifferent_to(self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Failure => self.tag() == Self::HELD,
            // while there are failures, the end of each call is waited for, whatever came of it
            Verdict::Nothing | Verdict::Success => matches!(self.tag(), Self::CLEAN | Self::HELD),
        }
    }
}
