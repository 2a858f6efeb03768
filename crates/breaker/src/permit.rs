//! The right to make one call: a guard that settles once.

use std::fmt;
use std::sync::Arc;

use crate::state::Ticket;
use crate::{Circuit, Verdict};

/// The right to make one call through a [`Circuit`]. Dropped without a word, it counts as nothing,
/// and a probe's place goes to the next call.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once counts for nothing"]
pub struct Permit {
    circuit: Option<Arc<Circuit>>,
    ticket: Ticket,
}

impl Permit {
    pub(crate) const fn new(circuit: Arc<Circuit>, ticket: Ticket) -> Self {
        Self {
            circuit: Some(circuit),
            ticket,
        }
    }

    /// The call succeeded.
    pub fn succeed(mut self) {
        self.settle(Verdict::Success, None);
    }

    /// The call failed, and why. The cause is only read if this failure opens the breaker.
    pub fn fail(mut self, cause: &dyn fmt::Display) {
        self.settle(Verdict::Failure, Some(cause));
    }

    fn settle(&mut self, verdict: Verdict, cause: Option<&dyn fmt::Display>) {
        if let Some(circuit) = self.circuit.take() {
            circuit.settle(self.ticket, verdict, cause);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.settle(Verdict::Nothing, None);
    }
}
