//! The state machine: pure, told what time it is.
//!
//! Each change of phase starts a new *generation*, and a ticket counts only in the generation it
//! was given in. This one rule covers every late outcome: of a call let through before the breaker
//! opened, of a probe that was written off, of a connection that was lost since.

use std::time::Duration;

use tokio::time::Instant;

use crate::run::{Ended, Fault, Run};
use crate::window::{Counts, Window};
use crate::{BreakerConfig, BreakerState, Risk, Verdict};

/// One breaker.
#[derive(Debug, Clone)]
pub(crate) struct State {
    phase: Phase,
    generation: u32,
    /// In a row, without closing in between.
    trips: u32,
    /// In a row, within one phase.
    run: Run,
    /// Whether it ever let a safe call through: then it is worth waiting for one as a probe.
    safe_calls: bool,
    /// Of the calls while closed, if any share of them opens it.
    window: Option<Box<Window>>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed,
    ForcedClosed,
    ForcedOpen,
    HalfOpen {
        probes: u32,
        /// When the probes in flight, if they take all places, are written off.
        renews: Instant,
        /// When writes may be probes.
        writes: Instant,
    },
    Open {
        until: Instant,
    },
}

/// The right to make one call, in one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u32,
    /// The failures that were [known](Run::known) when it was given.
    pub(crate) known: u16,
}

/// What came of a call that was let through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// What a failure may have in common with others.
    pub(crate) fault: Fault,
    /// How long it took, if that is known.
    pub(crate) took: Option<Duration>,
    /// The calls that are under way beside it, where they are counted.
    pub(crate) others: u32,
    /// Whether any were under way beside each other, not long ago.
    pub(crate) overlapped: bool,
}

/// What an outcome changed, as far as anybody wants to hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Closed,
    Opened { trip: Trip, open_for: Duration },
}

/// What opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trip {
    /// So many of the window's calls failed.
    FailureRate(Counts),
    /// So many failures in a row.
    InARow(u32),
    ProbeFailed,
    ProbeSlow,
    /// So many of the window's calls were slow.
    SlowRate(Counts),
}

impl State {
    pub(crate) fn new(config: &BreakerConfig, now: Instant) -> Self {
        Self {
            phase: Phase::Closed,
            generation: 0,
            trips: 0,
            run: Run::default(),
            safe_calls: false,
            window: config
                .takes_shares()
                .then(|| Box::new(Window::new(config.window, now))),
        }
    }

    /// Lets a call through, or tells how long until one like it would be; `None` for as long as
    /// forced.
    pub(crate) fn admit(
        &mut self,
        risk: Risk,
        config: &BreakerConfig,
        now: Instant,
    ) -> Result<Ticket, Option<Duration>> {
        let wait = self.time_to_pass(risk, config, now);
        if wait != Some(Duration::ZERO) {
            return Err(wait);
        }
        self.safe_calls |= risk == Risk::Safe;
        let (probes, writes) = match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::ForcedOpen => {
                return Ok(self.ticket());
            }
            Phase::HalfOpen { probes, writes, .. } => (probes, writes),
            Phase::Open { until } => (config.probes, until + config.write_grace()),
        };
        let renews = now + config.probe_time();
        let probing = |probes| Phase::HalfOpen {
            probes,
            renews,
            writes,
        };
        if probes < config.probes {
            self.phase = probing(probes + 1);
        } else {
            // due, or all probes written off
            self.enter(probing(1));
        }
        Ok(self.ticket())
    }

    /// How long until such a call would be let through: zero if it is now, `None` for as long as
    /// forced. Takes no place.
    pub(crate) fn time_to_pass(
        &self,
        risk: Risk,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Duration> {
        let waits_for_safe = risk == Risk::Write && self.safe_calls;
        let from = match self.phase {
            Phase::Closed | Phase::ForcedClosed => return Some(Duration::ZERO),
            Phase::ForcedOpen => return None,
            Phase::HalfOpen {
                probes,
                renews,
                writes,
            } => {
                let place = if probes < config.probes { now } else { renews };
                if waits_for_safe {
                    place.max(writes)
                } else {
                    place
                }
            }
            Phase::Open { until } if waits_for_safe => until + config.write_grace(),
            Phase::Open { until } => until,
        };
        Some(from.saturating_duration_since(now))
    }

    /// Takes the outcome of a call that was let through.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Change> {
        if ticket.generation != self.generation {
            return None;
        }
        let Outcome { verdict, fault, .. } = outcome;
        let slow = config.is_slow(outcome.took);
        self.run.end(ticket.known);
        let ended = Ended {
            fault,
            known: ticket.known,
            at: now,
            others: outcome.others,
            overlapped: outcome.overlapped,
        };
        match (&mut self.phase, verdict) {
            (Phase::Closed, Verdict::Failure | Verdict::Success) => {
                let failed = verdict == Verdict::Failure;
                if failed {
                    self.run.count(ended);
                } else {
                    self.run.clear();
                }
                if let Some(window) = &mut self.window {
                    let tool = fault.tool.filter(|_| failed);
                    window.count(failed, slow, tool, now);
                }
                self.reason(failed, slow, config, now)
                    .map(|trip| self.trip(trip, config, now))
            }
            (Phase::HalfOpen { probes, .. }, Verdict::Failure) => {
                // each probe is asked for itself
                let fault = Fault {
                    is_shared: false,
                    ..fault
                };
                self.run.count(Ended { fault, ..ended });
                if self.run.is_one_tools() {
                    // it says no more of the server than before: the next call tells
                    *probes = probes.saturating_sub(1);
                    return None;
                }
                Some(self.trip(Trip::ProbeFailed, config, now))
            }
            // whoever says that slow is sick does not want it back slow
            (Phase::HalfOpen { .. }, Verdict::Success) if slow => {
                Some(self.trip(Trip::ProbeSlow, config, now))
            }
            (Phase::HalfOpen { .. }, Verdict::Success) => {
                self.close();
                Some(Change::Closed)
            }
            (Phase::HalfOpen { probes, .. }, Verdict::Nothing) => {
                *probes = probes.saturating_sub(1);
                None
            }
            (Phase::Closed, Verdict::Nothing)
            | (Phase::ForcedClosed | Phase::ForcedOpen | Phase::Open { .. }, _) => None,
        }
    }

    /// Says whether this is a ticket of a probe that still counts.
    pub(crate) const fn is_probe(&self, ticket: Ticket) -> bool {
        matches!(self.phase, Phase::HalfOpen { .. }) && ticket.generation == self.generation
    }

    /// Closes it, unless it is forced: that was a person's decision.
    pub(crate) fn reset(&mut self) -> Option<Change> {
        match self.phase {
            Phase::ForcedClosed | Phase::ForcedOpen => None,
            Phase::Closed => {
                self.close();
                None
            }
            Phase::HalfOpen { .. } | Phase::Open { .. } => {
                self.close();
                Some(Change::Closed)
            }
        }
    }

    /// Holds it open.
    pub(crate) fn force_open(&mut self) {
        self.enter(Phase::ForcedOpen);
    }

    /// Holds it closed.
    pub(crate) fn force_closed(&mut self) {
        self.enter(Phase::ForcedClosed);
    }

    /// Ends a forced state: the breaker is closed and counts again.
    pub(crate) fn release(&mut self) {
        if matches!(self.phase, Phase::ForcedClosed | Phase::ForcedOpen) {
            self.close();
        }
    }

    /// What a call is given that is let through now.
    pub(crate) const fn ticket(&self) -> Ticket {
        Ticket {
            generation: self.generation,
            known: self.run.known(),
        }
    }

    pub(crate) const fn had_safe_calls(&self) -> bool {
        self.safe_calls
    }

    /// Says whether each outcome must be written down.
    pub(crate) const fn tallies(&self) -> bool {
        self.window.is_some()
    }

    pub(crate) const fn failures(&self) -> u32 {
        match self.phase {
            Phase::Closed => self.run.failures(),
            _ => 0,
        }
    }

    /// The calls that shares are taken of; none if there are no shares.
    pub(crate) fn counts(&self, now: Instant) -> Option<Counts> {
        self.window.as_ref().map(|window| window.counts(now))
    }

    pub(crate) const fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::ForcedClosed => BreakerState::ForcedClosed,
            Phase::ForcedOpen => BreakerState::ForcedOpen,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
            Phase::Open { .. } => BreakerState::Open,
        }
    }

    /// How long until a probe is let through; `None` while closed or forced.
    pub(crate) fn time_to_probe(&self, config: &BreakerConfig, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::ForcedOpen => None,
            Phase::HalfOpen { .. } | Phase::Open { .. } => {
                self.time_to_pass(Risk::Safe, config, now)
            }
        }
    }

    /// Says what opens it after an outcome, if anything does. A good outcome never does, although it
    /// may be the one that makes the window big enough to tell.
    fn reason(
        &self,
        failed: bool,
        slow: bool,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Trip> {
        if failed && self.run.reaches(config.failures) {
            return Some(Trip::InARow(self.run.failures()));
        }
        if !failed && !slow {
            return None;
        }
        let window = self.window.as_ref()?;
        let counts = window.counts(now);
        let reaches = |counts: Counts, part, share: Option<u32>| {
            let are_enough = counts.calls >= config.min_calls;
            are_enough && share.is_some_and(|percent| counts.reaches(part, percent))
        };
        if failed {
            // what one tool alone may be the reason of is left out on both sides
            let others = counts.without(window.most_of_one_tool(now));
            if reaches(others, others.failed, config.failure_rate) {
                return Some(Trip::FailureRate(counts));
            }
        }
        let slow_share = config.slow_calls.map(|slow| slow.rate);
        (slow && reaches(counts, counts.slow, slow_share)).then_some(Trip::SlowRate(counts))
    }

    fn trip(&mut self, trip: Trip, config: &BreakerConfig, now: Instant) -> Change {
        self.trips = self.trips.saturating_add(1);
        let open_for = config.open_time_after(self.trips);
        self.enter(Phase::Open {
            until: now + open_for,
        });
        Change::Opened { trip, open_for }
    }

    fn close(&mut self) {
        self.trips = 0;
        self.enter(Phase::Closed);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation = self.generation.wrapping_add(1);
        self.run.clear();
        // a share is one of the calls of one generation
        if let Some(window) = &mut self.window {
            window.clear();
        }
    }
}

#[cfg(test)]
mod tests;
