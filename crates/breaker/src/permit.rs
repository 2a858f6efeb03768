//! The right to make one call: a guard that settles once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::state::{Outcome, Ticket};
use crate::streak::Fault;
use crate::{Circuit, Verdict};

/// The right to make one call through a [`Circuit`]. Dropped unsettled, it counts as nothing, and a
/// probe's place goes to the next call.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once counts as nothing"]
pub struct Permit {
    circuit: Arc<Circuit>,
    /// `None` once it is settled.
    ticket: Option<Ticket>,
    /// When the call began, if calls are timed.
    began: Option<Instant>,
    /// How long the call waited for a person, which makes no call slow.
    pub(crate) waited: Duration,
}

impl Permit {
    pub(crate) fn new(circuit: Arc<Circuit>, ticket: Ticket) -> Self {
        Self {
            began: circuit.takes_time().then(Instant::now),
            circuit,
            ticket: Some(ticket),
            waited: Duration::ZERO,
        }
    }

    /// The call succeeded.
    pub fn succeed(mut self) {
        self.settle(Verdict::Success, Fault::default(), &"");
    }

    /// The call failed. The cause is only read if this failure opens the breaker.
    pub fn fail(self, cause: &dyn fmt::Display) {
        self.fail_of(Fault::default(), cause);
    }

    pub(crate) fn fail_of(mut self, fault: Fault, cause: &dyn fmt::Display) {
        self.settle(Verdict::Failure, fault, cause);
    }

    fn settle(&mut self, verdict: Verdict, fault: Fault, cause: &dyn fmt::Display) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let took = |began: Instant| began.elapsed().saturating_sub(self.waited);
        let outcome = Outcome {
            verdict,
            fault,
            took: self.began.map(took),
            cause,
        };
        self.circuit.settle(ticket, outcome);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.settle(Verdict::Nothing, Fault::default(), &"");
    }
}
