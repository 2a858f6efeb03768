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

/// Returns `true` for a write that must not be sent twice: a probe only if no safe call comes.
pub(crate) const fn is_unsafe_write(plan: &CallPlan) -> bool {
    plan.is_write() && !plan.is_retryable()
}

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    config: BreakerConfig,
    /// An operator holds it open or closed; its own phase is closed meanwhile.
    forced: Option<bool>,
    /// `None` while closed.
    open: Option<Open>,
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

/// The phase of a breaker that is not closed.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_half: bool,
    /// How many places of probes are taken: all of them until the open time is over.
    probes: u32,
    /// When the open time is over, or the probes in flight, if they take all places, are written
    /// off.
    until: Instant,
    /// From when on writes may be probes.
    writes: Instant,
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

    /// Admits a call, or returns why not. An extra call passes an open breaker, unless an operator
    /// holds it open.
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
        if let Some(open) = self.open {
            // due, or all probes written off
            let begins = open.probes >= self.config.probes;
            if begins {
                self.enter(None);
            }
            self.open = Some(Open {
                is_half: true,
                probes: if begins { 1 } else { open.probes + 1 },
                until: now + self.config.open_time.max(MIN_PROBE_TIME),
                writes: open.writes,
            });
        }
        Ok(self.ticket(false, now))
    }

    const fn ticket(&self, is_extra: bool, given: Instant) -> Ticket {
        Ticket {
            generation: self.generation,
            known: self.streak.known,
            number: self.admitted,
            is_extra,
            given,
        }
    }

    /// Returns how long until such a call would be admitted: zero if it would be now, `None` while
    /// forced open. Takes no place.
    pub(crate) fn time_to_pass(&self, is_write: bool, now: Instant) -> Option<Duration> {
        let Some(open) = self.open else {
            return (self.forced != Some(true)).then_some(Duration::ZERO);
        };
        let has_place = open.probes < self.config.probes;
        let mut from = if has_place { now } else { open.until };
        if is_write && self.saw_safe_call {
            from = from.max(open.writes);
        }
        Some(from.saturating_duration_since(now))
    }

    /// Returns how long until a probe is admitted; `None` while closed or forced.
    pub(crate) fn time_to_probe(&self, now: Instant) -> Option<Duration> {
        self.open.and_then(|_| self.time_to_pass(false, now))
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
        if ticket.generation != self.generation || self.forced.is_some() {
            return;
        }
        if ticket.number != self.admitted {
            self.streak.overlapped_at = Some(now);
        }
        let took = now.saturating_duration_since(ticket.given + waited);
        let slow = self.config.slow_after.filter(|after| took >= *after);
        if ticket.is_extra {
            if verdict == Verdict::Success && slow.is_none() && self.open.is_some() {
                self.close();
            }
            return;
        }
        match (&mut self.open, verdict) {
            (None, Verdict::Failure | Verdict::Success) => {
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
            (Some(open), _) if open.is_half => match (verdict, slow) {
                (Verdict::Failure, _) => {
                    // each probe counts
                    self.streak.add(fault.tool);
                    if self.streak.is_one_tool() {
                        // it says no more of the server than before: the next call decides
                        open.probes = open.probes.saturating_sub(1);
                    } else {
                        self.trip(&format!("a probe failed: {}", shortened(cause)), now);
                    }
                }
                (Verdict::Success, None) => self.close(),
                (Verdict::Success, Some(after)) => {
                    self.trip(&format!("a probe took {after:?} or longer"), now);
                }
                (Verdict::Nothing, _) => open.probes = open.probes.saturating_sub(1),
            },
            _ => {}
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
        self.enter(Some(Open {
            is_half: false,
            probes: self.config.probes,
            until,
            writes: until + self.config.open_time,
        }));
    }

    /// Closes it, unless an operator holds it.
    pub(crate) fn close(&mut self) {
        self.closed += u64::from(self.open.is_some());
        self.trips = 0;
        self.enter(None);
    }

    /// Holds it closed or open; `None` ends that, and it is closed and counts again.
    pub(crate) fn force(&mut self, open: Option<bool>) {
        if open != self.forced {
            self.forced = open;
            self.trips = 0;
            self.enter(None);
        }
    }

    fn enter(&mut self, open: Option<Open>) {
        self.open = open;
        self.generation = self.generation.wrapping_add(1);
        self.streak.clear();
        if let Some(window) = &mut self.window {
            window.clear();
        }
    }

    /// Returns the failures in a row; 0 unless closed, as each phase starts from 0.
    pub(crate) fn failures(&self) -> u32 {
        match self.open {
            None => self.streak.failures(),
            Some(_) => 0,
        }
    }

    /// Returns the counts of the window; `None` if no share opens the breaker.
    pub(crate) fn counts(&self, now: Instant) -> Option<WindowStatus> {
        self.window.as_ref().map(|window| window.counts(now))
    }

    pub(crate) const fn state(&self) -> BreakerState {
        match (self.forced, self.open) {
            (Some(true), _) => BreakerState::ForcedOpen,
            (Some(false), _) => BreakerState::ForcedClosed,
            _ if self.is_lost => BreakerState::Disconnected,
            (None, None) => BreakerState::Closed,
            (None, Some(open)) if open.is_half => BreakerState::HalfOpen,
            (None, Some(_)) => BreakerState::Open,
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
