//! The right to make one call: a guard that settles once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::state::Ticket;
use crate::{Circuit, Verdict};

/// The right to make one call through a [`Circuit`]. Dropped without a word, it counts as nothing,
/// and a probe's place goes to the next call.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once counts for nothing"]
pub struct Permit<C: Deref<Target = Circuit> = Arc<Circuit>> {
    circuit: Option<C>,
    ticket: Ticket,
    /// When the call began; not looked up where no one cares how long it takes.
    began: Option<Instant>,
    waited: Duration,
}

impl<C: Deref<Target = Circuit>> Permit<C> {
    #[inline]
    pub(crate) fn new(circuit: C, ticket: Ticket) -> Self {
        Self {
            began: circuit.takes_time().then(Instant::now),
            circuit: Some(circuit),
            ticket,
            waited: Duration::ZERO,
        }
    }

    /// Takes off time in which the call waited for a person: it makes no call slow.
    pub fn take_off(&mut self, waited: Duration) {
        self.waited = self.waited.saturating_add(waited);
    }

    /// The call succeeded.
    #[inline]
    pub fn succeed(mut self) {
        self.settle(Verdict::Success, None);
    }

    /// The call failed, and why. The cause is only read if this failure opens the breaker.
    pub fn fail(mut self, cause: &dyn fmt::Display) {
        self.settle(Verdict::Failure, Some(cause));
    }

    #[inline]
    fn settle(&mut self, verdict: Verdict, cause: Option<&dyn fmt::Display>) {
        if let Some(circuit) = self.circuit.take() {
            let began = self.began.map(|began| (began, self.waited));
            circuit.settle(self.ticket, verdict, began, cause);
        }
    }
}

impl<C: Deref<Target = Circuit>> Drop for Permit<C> {
    #[inline]
    fn drop(&mut self) {
        if self.circuit.is_some() {
            self.settle(Verdict::Nothing, None);
        }
    }
}
