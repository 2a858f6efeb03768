//! The state machine: pure, told what time it is.
//!
//! Each change of phase starts a new *generation*, and a ticket counts only in the generation it
//! was given in. This one rule covers every late outcome: of a call let through before the breaker
//! opened, of a probe that was written off, of a connection that was lost since.

use std::time::Duration;

use tokio::time::Instant;

use crate::{BreakerConfig, BreakerState, Verdict};

/// One breaker.
#[derive(Debug, Clone)]
pub(crate) struct State {
    phase: Phase,
    generation: u32,
    /// In a row, without closing in between.
    trips: u32,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed {
        failures: u32,
    },
    ForcedClosed,
    ForcedOpen,
    /// `renews` is when the probes in flight, if they take all places, are written off.
    HalfOpen {
        probes: u32,
        renews: Instant,
    },
    Open {
        until: Instant,
    },
}

/// The right to make one call, in one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u32);

/// What an outcome changed, as far as anybody wants to hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Closed,
    /// After this many failures in a row; 0 stands for a failed probe.
    Opened {
        failures: u32,
        open_for: Duration,
    },
}

impl State {
    pub(crate) const fn new() -> Self {
        Self {
            phase: Phase::Closed { failures: 0 },
            generation: 0,
            trips: 0,
        }
    }

    /// Lets a call through, or tells how long until one would be; `None` for as long as forced.
    pub(crate) fn admit(
        &mut self,
        config: &BreakerConfig,
        now: Instant,
    ) -> Result<Ticket, Option<Duration>> {
        if !self.is_available(config, now) {
            return Err(self.time_to_probe(config, now));
        }
        match self.phase {
            Phase::HalfOpen { probes, .. } if probes < config.probes => {
                self.phase = probing(probes + 1, config, now);
            }
            // due, or all probes written off
            Phase::Open { .. } | Phase::HalfOpen { .. } => self.enter(probing(1, config, now)),
            Phase::Closed { .. } | Phase::ForcedClosed | Phase::ForcedOpen => {}
        }
        Ok(Ticket(self.generation))
    }

    /// Says whether a call would be let through. Takes no place.
    pub(crate) fn is_available(&self, config: &BreakerConfig, now: Instant) -> bool {
        match self.phase {
            Phase::Closed { .. } | Phase::ForcedClosed => true,
            Phase::ForcedOpen => false,
            Phase::HalfOpen { probes, renews } => probes < config.probes || now >= renews,
            Phase::Open { until } => now >= until,
        }
    }

    /// Takes the outcome of a call that was let through.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Change> {
        if ticket.0 != self.generation {
            return None;
        }
        match (&mut self.phase, verdict) {
            (Phase::Closed { failures }, Verdict::Failure) => {
                *failures = failures.saturating_add(1);
                let failures = *failures;
                (failures >= config.failures).then(|| self.trip(failures, config, now))
            }
            (Phase::Closed { failures }, Verdict::Success) => {
                *failures = 0;
                None
            }
            (Phase::HalfOpen { .. }, Verdict::Failure) => Some(self.trip(0, config, now)),
            (Phase::HalfOpen { .. }, Verdict::Success) => {
                self.close();
                Some(Change::Closed)
            }
            (Phase::HalfOpen { probes, .. }, Verdict::Nothing) => {
                *probes = probes.saturating_sub(1);
                None
            }
            (Phase::Closed { .. }, Verdict::Nothing)
            | (Phase::ForcedClosed | Phase::ForcedOpen | Phase::Open { .. }, _) => None,
        }
    }

    /// Closes it, unless it is forced: that was a person's decision.
    pub(crate) fn reset(&mut self) -> Option<Change> {
        match self.phase {
            Phase::ForcedClosed | Phase::ForcedOpen => None,
            Phase::Closed { .. } => {
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

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) const fn failures(&self) -> u32 {
        match self.phase {
            Phase::Closed { failures } => failures,
            _ => 0,
        }
    }

    pub(crate) const fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::ForcedClosed => BreakerState::ForcedClosed,
            Phase::ForcedOpen => BreakerState::ForcedOpen,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
            Phase::Open { .. } => BreakerState::Open,
        }
    }

    /// How long until a probe is let through; `None` while closed or forced.
    pub(crate) fn time_to_probe(&self, config: &BreakerConfig, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Closed { .. } | Phase::ForcedClosed | Phase::ForcedOpen => None,
            Phase::HalfOpen { probes, .. } if probes < config.probes => Some(Duration::ZERO),
            Phase::HalfOpen { renews, .. } => Some(renews.saturating_duration_since(now)),
            Phase::Open { until } => Some(until.saturating_duration_since(now)),
        }
    }

    fn trip(&mut self, failures: u32, config: &BreakerConfig, now: Instant) -> Change {
        self.trips = self.trips.saturating_add(1);
        let open_for = config.open_time_after(self.trips);
        self.enter(Phase::Open {
            until: now + open_for,
        });
        Change::Opened { failures, open_for }
    }

    fn close(&mut self) {
        self.trips = 0;
        self.enter(Phase::Closed { failures: 0 });
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation = self.generation.wrapping_add(1);
    }
}

fn probing(probes: u32, config: &BreakerConfig, now: Instant) -> Phase {
    Phase::HalfOpen {
        probes,
        renews: now + config.probe_time(),
    }
}

#[cfg(test)]
mod tests;
