//! What a call needs to know of a breaker, in one word that is read without a lock.

use crate::state::{State, Ticket};
use crate::{BreakerState, Verdict};

/// The generation in the upper half, one of the tags below in the lower.
#[derive(Clone, Copy)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// Closed, no failures.
    const CLEAN: u64 = 0;
    /// Closed, with failures.
    const MARKED: u64 = 1;
    /// Forced closed.
    const HELD: u64 = 2;
    /// Anything else: the lock knows.
    const ASK: u64 = 3;

    pub(crate) fn of(state: &State) -> Self {
        let tag = match state.state() {
            BreakerState::Closed if state.failures() == 0 => Self::CLEAN,
            BreakerState::Closed => Self::MARKED,
            BreakerState::ForcedClosed => Self::HELD,
            BreakerState::ForcedOpen | BreakerState::HalfOpen | BreakerState::Open => Self::ASK,
        };
        Self(u64::from(state.generation()) << 32 | tag)
    }

    const fn tag(self) -> u64 {
        self.0 & 0xFFFF_FFFF
    }

    pub(crate) const fn ticket(self) -> Ticket {
        Ticket((self.0 >> 32) as u32)
    }

    pub(crate) const fn is_clean(self) -> bool {
        self.tag() == Self::CLEAN
    }

    pub(crate) const fn lets_all_through(self) -> bool {
        self.tag() != Self::ASK
    }

    /// Says whether an outcome would change nothing.
    pub(crate) const fn is_indifferent_to(self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Failure => self.tag() == Self::HELD,
            Verdict::Nothing => self.lets_all_through(),
            Verdict::Success => matches!(self.tag(), Self::CLEAN | Self::HELD),
        }
    }
}
