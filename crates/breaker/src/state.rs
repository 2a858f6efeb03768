//! The state machine of one breaker: pure, with the time as an argument.
//!
//! Each change of phase starts a new *generation*, and the outcome of a call counts only in the
//! generation in which the call was admitted. This one rule covers every late outcome.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{CallPlan, one_line};
use tokio::time::Instant;

use crate::streak::{Fault, Streak};
use crate::window::Window;
use crate::{BreakerConfig, BreakerState, Rejection, Verdict, WindowStatus};

/// Returns `true` for a write that must not be sent twice: it is a probe only if no safe call comes.
pub(crate) const fn is_unsafe_write(plan: &CallPlan) -> bool {
    plan.is_write() && !plan.is_retryable()
}

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    config: BreakerConfig,
    phase: Phase,
    generation: u32,
    /// Consecutive trips, without closing in between.
    trips: u32,
    /// Consecutive failures within one phase.
    streak: Streak,
    /// `true` once a safe call was admitted: then a write waits for one to be the probe.
    saw_safe_call: bool,
    /// The server's connection is known to be lost. That makes the server unavailable, and refuses
    /// no call: one that has nowhere else to go finds out for itself.
    pub(crate) is_lost: bool,
    window: Option<Window>,
    /// How many calls were admitted. It wraps, and is compared for equality only.
    admitted: u32,
    /// Why it opened last.
    pub(crate) last_trip: Option<Arc<str>>,
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) refused: u64,
}

/// A probe has this much time even if the breaker opens for less.
const MIN_PROBE_TIME: Duration = Duration::from_secs(if cfg!(shuttle) { 3600 } else { 1 });

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    #[default]
    Closed,
    ForcedClosed,
    ForcedOpen,
    HalfOpen {
        probes: u32,
        /// When the probes in flight, if they take all places, are written off.
        renews: Instant,
        /// From when on writes may be probes.
        writes: Instant,
    },
    Open {
        until: Instant,
    },
}

/// The right to make one call, in one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    generation: u32,
    /// The failures that were [known](Streak::known) when it was given.
    known: u32,
    /// The number of the call.
    number: u32,
    /// The call was sent although the breaker is open. Only its success counts.
    is_extra: bool,
    given: Instant,
}

impl State {
    /// Makes a closed breaker. `config` is valid.
    pub(crate) fn new(config: BreakerConfig, now: Instant) -> Self {
        let takes_shares = config.failure_rate.is_some() || config.slow_after.is_some();
        Self {
            window: takes_shares.then(|| Window::new(config.window, now)),
            config,
            ..Self::default()
        }
    }

    /// Admits a call, or says why not. An extra call is sent although the breaker is open, unless an
    /// operator holds it so.
    pub(crate) fn admit(
        &mut self,
        is_write: bool,
        is_extra: bool,
        now: Instant,
    ) -> Result<Ticket, Rejection> {
        let wait = self.time_to_pass(is_write, now);
        if wait != Some(Duration::ZERO) {
            if is_extra && wait.is_some() {
                return Ok(self.ticket(true, now));
            }
            self.refused += 1;
            let to_probe = self.time_to_probe(now);
            // a safe call would be admitted now: only the write has to wait
            let is_write_held = to_probe == Some(Duration::ZERO);
            return Err(Rejection {
                state: self.state(),
                last_trip: self.last_trip.clone(),
                time_to_probe: if is_write_held { wait } else { to_probe },
                is_write_held,
            });
        }
        self.saw_safe_call |= !is_write;
        self.admitted = self.admitted.wrapping_add(1);
        let (places, open_time) = (self.config.probes, self.config.open_time);
        let (taken, writes) = match self.phase {
            Phase::HalfOpen { probes, writes, .. } => (probes, writes),
            Phase::Open { until } => (places, until + open_time),
            Phase::Closed | Phase::ForcedClosed | Phase::ForcedOpen => {
                return Ok(self.ticket(false, now));
            }
        };
        // due, or all probes written off
        let begins = taken >= places;
        let phase = Phase::HalfOpen {
            probes: if begins { 1 } else { taken + 1 },
            renews: now + open_time.max(MIN_PROBE_TIME),
            writes,
        };
        if begins {
            self.enter(phase);
        }
        self.phase = phase;
        Ok(self.ticket(false, now))
    }

    const fn ticket(&self, is_extra: bool, given: Instant) -> Ticket {
        Ticket {
            generation: self.generation,
            known: self.streak.known(),
            number: self.admitted,
            is_extra,
            given,
        }
    }

    /// Returns how long until such a call would be admitted: zero if it would be now, `None` while
    /// forced open. Takes no place.
    pub(crate) fn time_to_pass(&self, is_write: bool, now: Instant) -> Option<Duration> {
        let (safe, write) = match self.phase {
            Phase::Closed | Phase::ForcedClosed => return Some(Duration::ZERO),
            Phase::ForcedOpen => return None,
            Phase::HalfOpen { probes, writes, .. } if probes < self.config.probes => (now, writes),
            Phase::HalfOpen { renews, writes, .. } => (renews, writes),
            Phase::Open { until } => (until, until + self.config.open_time),
        };
        let waits_for_safe = is_write && self.saw_safe_call;
        let from = if waits_for_safe {
            safe.max(write)
        } else {
            safe
        };
        Some(from.saturating_duration_since(now))
    }

    /// Returns how long until a probe is admitted; `None` while closed or forced.
    pub(crate) fn time_to_probe(&self, now: Instant) -> Option<Duration> {
        let is_open = self.is_open();
        is_open.then(|| self.time_to_pass(false, now))?
    }

    /// Takes the outcome of a call that was admitted; time in which it waited for a person makes it
    /// no slower. The cause is why it failed.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        fault: Fault,
        waited: Duration,
        cause: &dyn fmt::Display,
        now: Instant,
    ) {
        if ticket.generation != self.generation {
            return;
        }
        if ticket.number != self.admitted {
            self.streak.overlap(now);
        }
        let took = now.saturating_duration_since(ticket.given + waited);
        let slow = self.config.slow_after.filter(|after| took >= *after);
        match (&mut self.phase, verdict) {
            _ if ticket.is_extra => {
                if verdict == Verdict::Success && slow.is_none() && self.is_open() {
                    self.close();
                }
            }
            (Phase::Closed, Verdict::Failure | Verdict::Success) => {
                let has_failed = verdict == Verdict::Failure;
                match has_failed {
                    true => self.streak.count(fault, ticket.known, now),
                    false => self.streak.clear(),
                }
                // in a share, a lost connection proves nothing: it may be the one tool
                if let Some(window) = &mut self.window
                    && (!has_failed || fault.tool.is_none())
                {
                    window.count(has_failed, slow.is_some(), now);
                }
                let cause = has_failed.then_some(cause);
                if let Some(why) = self.reason(cause, slow, now) {
                    self.trip(&why, now);
                }
            }
            (Phase::HalfOpen { probes, .. }, Verdict::Failure) => {
                // each probe counts
                self.streak.add(fault.tool);
                if self.streak.is_one_tool() {
                    // it says no more of the server than before: the next call decides
                    *probes = probes.saturating_sub(1);
                } else {
                    let why = format!("a probe failed: {}", shortened(cause));
                    self.trip(&why, now);
                }
            }
            (Phase::HalfOpen { .. }, Verdict::Success) => match slow {
                None => self.close(),
                Some(after) => {
                    let why = format!("a probe took {after:?} or longer");
                    self.trip(&why, now);
                }
            },
            (Phase::HalfOpen { probes, .. }, Verdict::Nothing) => {
                *probes = probes.saturating_sub(1);
            }
            (Phase::Closed, Verdict::Nothing)
            | (Phase::ForcedClosed | Phase::ForcedOpen | Phase::Open { .. }, _) => {}
        }
    }

    /// Returns why the breaker opens after a call, with the cause if it failed, and after how long
    /// a call is slow if it was. A good outcome never opens it, even if it is the one that makes
    /// the window large enough.
    fn reason(
        &self,
        cause: Option<&dyn fmt::Display>,
        slow: Option<Duration>,
        now: Instant,
    ) -> Option<String> {
        let config = &self.config;
        if let Some(cause) = cause.filter(|_| self.streak.reaches(config.failures)) {
            return Some(match self.streak.failures() {
                1 => format!("a failure: {}", shortened(cause)),
                many => format!("{many} failures in a row, the last: {}", shortened(cause)),
            });
        }
        let counts = self.counts(now)?;
        let reaches = |part: u32, share: f64| {
            counts.calls >= config.min_calls && f64::from(part) >= f64::from(counts.calls) * share
        };
        let of_all = |part| {
            format!(
                "{part} of {} calls within {:?}",
                counts.calls, config.window
            )
        };
        if let (Some(cause), Some(share)) = (cause, config.failure_rate)
            && reaches(counts.failed, share)
        {
            let failed = of_all(counts.failed);
            return Some(format!("{failed} failed, the last: {}", shortened(cause)));
        }
        let why = |after| format!("{} took {after:?} or longer", of_all(counts.slow));
        slow.filter(|_| reaches(counts.slow, config.slow_share()))
            .map(why)
    }

    fn trip(&mut self, why: &str, now: Instant) {
        self.trips = self.trips.saturating_add(1);
        self.opened += 1;
        self.last_trip = Some(why.into());
        let until = now + self.config.open_time_after(self.trips);
        self.enter(Phase::Open { until });
    }

    /// Closes it, unless an operator forced it: the connection is new.
    pub(crate) fn reset(&mut self) {
        if self.is_open() || matches!(self.phase, Phase::Closed) {
            self.close();
        }
    }

    fn close(&mut self) {
        self.closed += u64::from(self.is_open());
        self.trips = 0;
        self.enter(Phase::Closed);
    }

    /// Holds it closed or open; `None` ends that, and it is closed and counts again.
    pub(crate) fn force(&mut self, open: Option<bool>) {
        match (open, self.phase) {
            (Some(true), _) => self.enter(Phase::ForcedOpen),
            (Some(false), _) => self.enter(Phase::ForcedClosed),
            (None, Phase::ForcedClosed | Phase::ForcedOpen) => self.close(),
            (None, _) => {}
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation = self.generation.wrapping_add(1);
        self.streak.clear();
        if let Some(window) = &mut self.window {
            window.clear();
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::HalfOpen { .. } | Phase::Open { .. })
    }

    /// Returns the failures in a row; 0 unless closed, as each phase starts from 0.
    pub(crate) fn failures(&self) -> u32 {
        match self.phase {
            Phase::Closed => self.streak.failures(),
            _ => 0,
        }
    }

    /// Returns the counts of the window; `None` if no share opens the breaker.
    pub(crate) fn counts(&self, now: Instant) -> Option<WindowStatus> {
        self.window.as_ref().map(|window| window.counts(now))
    }

    pub(crate) const fn state(&self) -> BreakerState {
        match self.phase {
            Phase::ForcedClosed => BreakerState::ForcedClosed,
            Phase::ForcedOpen => BreakerState::ForcedOpen,
            _ if self.is_lost => BreakerState::Disconnected,
            Phase::Closed => BreakerState::Closed,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
            Phase::Open { .. } => BreakerState::Open,
        }
    }
}

/// Returns the beginning of a cause.
fn shortened(cause: &dyn fmt::Display) -> String {
    one_line(&cause.to_string(), MAX_CAUSE_CHARS)
}

const MAX_CAUSE_CHARS: usize = 200;

#[cfg(test)]
mod tests;
