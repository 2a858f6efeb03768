//! The right to make one call: a guard that settles once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::run::Fault;
use crate::state::Ticket;
use crate::{Circuit, Verdict};

/// The right to make one call through a [`Circuit`]. Dropped without a word, it counts as nothing,
/// and a probe's place goes to the next call.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once counts for nothing"]
pub struct Permit<C: Deref<Target = Circuit> = Arc<Circuit>> {
    circuit: C,
    ticket: Ticket,
    settled: bool,
    /// It is counted among the calls that are under way.
    counted: bool,
    /// When the call began, as the circuit counts time; 0 where no one cares how long it takes. Small
    /// numbers, since a permit is moved into the future of its call.
    began: u64,
    /// How long it waited for a person, in nanoseconds.
    waited: u64,
}

impl<C: Deref<Target = Circuit>> Permit<C> {
    #[inline]
    pub(crate) fn new(circuit: C, ticket: Ticket) -> Self {
        Self {
            began: if circuit.takes_time() {
                circuit.time_now()
            } else {
                0
            },
            circuit,
            ticket,
            settled: false,
            counted: false,
            waited: 0,
        }
    }

    /// Makes one for a call whose failure others may share.
    #[inline]
    pub(crate) fn counted(circuit: C, ticket: Ticket) -> Self {
        circuit.begin();
        let mut permit = Self::new(circuit, ticket);
        permit.counted = true;
        permit
    }

    /// Takes off time in which the call waited for a person: it makes no call slow.
    pub fn take_off(&mut self, waited: Duration) {
        self.waited = self.waited.saturating_add(nanos(waited));
    }

    /// The call succeeded.
    #[inline]
    pub fn succeed(mut self) {
        self.settle(Verdict::Success, None);
    }

    /// The call failed, and why. The cause is only read if this failure opens the breaker.
    pub fn fail(self, cause: &dyn fmt::Display) {
        self.fail_of(Fault::default(), cause);
    }

    /// The call failed, and so may have others for the same reason.
    pub(crate) fn fail_of(mut self, fault: Fault, text: &dyn fmt::Display) {
        self.settle(Verdict::Failure, Some(Cause { text, fault }));
    }
    #[inline]
    fn settle(&mut self, verdict: Verdict, cause: Option<Cause<'_>>) {
        if !std::mem::replace(&mut self.settled, true) {
            if self.counted {
                self.circuit.end();
            }
            let timing = (self.began, self.waited);
            self.circuit.settle(self.ticket, verdict, timing, cause);
        }
    }
}

impl<C: Deref<Target = Circuit>> Drop for Permit<C> {
    #[inline]
    fn drop(&mut self) {
        self.settle(Verdict::Nothing, None);
    }
}

/// What made a call fail.
#[derive(Clone, Copy)]
pub(crate) struct Cause<'a> {
    /// Only asked when the failure opens the breaker.
    pub(crate) text: &'a dyn fmt::Display,
    pub(crate) fault: Fault,
}

/// A duration as a permit holds it: half a millennium fits.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
