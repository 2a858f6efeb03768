//! The state machine of one breaker: pure, with the time as an argument.
//!
//! Each change of phase starts a new *generation*, and the outcome of a call counts only in the
//! generation in which the call was admitted. This one rule covers every late outcome.

use std::fmt;
use std::time::Duration;

use callward_core::CallPlan;
use tokio::time::Instant;

use crate::streak::{Fault, Streak};
use crate::window::Window;
use crate::{BreakerConfig, BreakerState, SlowCalls, Verdict, WindowStatus};

/// Whether a call may be a probe of a breaker that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a call is safe to probe with, or not"
)]
pub enum Risk {
    /// It changes nothing, or may be sent again if its outcome is unknown.
    Safe,
    /// It must not be sent twice: a probe only if no safe call comes.
    Write,
}

impl Risk {
    /// Returns the risk of a call with this plan.
    #[must_use]
    pub const fn of(plan: &CallPlan) -> Self {
        if plan.is_write() && !plan.is_retryable() {
            Self::Write
        } else {
            Self::Safe
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    phase: Phase,
    generation: u32,
    /// Consecutive trips, without closing in between.
    trips: u32,
    /// Consecutive failures within one phase.
    streak: Streak,
    /// `true` once a safe call was admitted: then a write waits for one to be the probe.
    saw_safe_call: bool,
    /// `false` while the server's connection is known to be lost.
    connected: bool,
    window: Option<Window>,
    /// How many calls were admitted. It wraps, and is compared for equality only.
    admitted: u32,
    /// When a call last ended that overlapped with a later one.
    overlapped_at: Option<Instant>,
    /// When a failure last counted.
    counted_at: Option<Instant>,
}

/// Where calls overlap, what fails within this time is one event. Quick calls end before the next
/// one begins: among hundreds of answers a second, chance soon puts three failures in a row.
///
/// Model checks have no clock: there only the order counts.
const EVENT: Duration = Duration::from_millis(if cfg!(shuttle) { 0 } else { 100 });
/// How long calls are taken to overlap after two of them did.
const OVERLAP: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
enum Phase {
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
}

/// The outcome of a call that was admitted.
#[derive(Clone, Copy)]
pub(crate) struct Outcome<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) fault: Fault,
    /// How long the call took, if calls are timed.
    pub(crate) took: Option<Duration>,
    /// Why the call failed; empty if it did not.
    pub(crate) cause: &'a dyn fmt::Display,
}

/// What an outcome changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Closed,
    Opened { why: String, open_for: Duration },
}

impl State {
    pub(crate) fn new(config: &BreakerConfig, now: Instant) -> Self {
        Self {
            phase: Phase::Closed,
            generation: 0,
            trips: 0,
            streak: Streak::default(),
            saw_safe_call: false,
            connected: true,
            window: config
                .takes_shares()
                .then(|| Window::new(config.window, now)),
            admitted: 0,
            overlapped_at: None,
            counted_at: None,
        }
    }

    /// Admits a call, or returns how long until one like it would be; `None` while forced open.
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
        self.saw_safe_call |= risk == Risk::Safe;
        self.admitted = self.admitted.wrapping_add(1);
        let (probes, writes) = match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::ForcedOpen => {
                return Ok(self.ticket(false));
            }
            Phase::HalfOpen { probes, writes, .. } => (probes, writes),
            Phase::Open { until } => (config.probes, until + config.open_time),
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
        Ok(self.ticket(false))
    }

    /// Admits a call although the breaker is open; `None` if an operator holds it open.
    pub(crate) fn admit_extra(&self) -> Option<Ticket> {
        (!matches!(self.phase, Phase::ForcedOpen)).then(|| self.ticket(true))
    }

    /// Returns how long until such a call would be admitted: zero if it would be now, `None` while
    /// forced open. Takes no place.
    pub(crate) fn time_to_pass(
        &self,
        risk: Risk,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Duration> {
        let waits_for_safe = risk == Risk::Write && self.saw_safe_call;
        let from = match self.phase {
            Phase::Closed | Phase::ForcedClosed => return Some(Duration::ZERO),
            Phase::ForcedOpen => return None,
            Phase::HalfOpen {
                probes,
                renews,
                writes,
            } => {
                let place = if probes < config.probes { now } else { renews };
                place.max(if waits_for_safe { writes } else { place })
            }
            Phase::Open { until } if waits_for_safe => until + config.open_time,
            Phase::Open { until } => until,
        };
        Some(from.saturating_duration_since(now))
    }

    /// Takes the outcome of a call that was admitted.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        outcome: Outcome<'_>,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Change> {
        if ticket.generation != self.generation {
            return None;
        }
        if ticket.number != self.admitted {
            self.overlapped_at = Some(now);
        }
        let Outcome {
            verdict,
            fault,
            took,
            cause,
        } = outcome;
        let slow = config.is_slow(took);
        if ticket.is_extra {
            let is_open = matches!(self.phase, Phase::HalfOpen { .. } | Phase::Open { .. });
            return (is_open && verdict == Verdict::Success && !slow).then(|| self.close());
        }
        match (&mut self.phase, verdict) {
            (Phase::Closed, Verdict::Failure | Verdict::Success) => {
                let failed = verdict == Verdict::Failure;
                if failed && !self.is_same_event(now) && self.streak.count(fault, ticket.known) {
                    self.counted_at = Some(now);
                } else if !failed {
                    self.streak.clear();
                }
                // in a share, a lost connection proves nothing: it may be the one tool
                if let Some(window) = &mut self.window
                    && fault.tool.is_none()
                {
                    window.count(failed, slow, now);
                }
                let cause = failed.then_some(cause);
                let why = self.reason(cause, slow, config, now)?;
                Some(self.trip(why, config, now))
            }
            (Phase::HalfOpen { probes, .. }, Verdict::Failure) => {
                // each probe counts
                let fault = Fault {
                    is_retry: false,
                    ..fault
                };
                self.streak.count(fault, self.streak.known());
                if self.streak.is_one_tool() {
                    // it says no more of the server than before: the next call decides
                    *probes = probes.saturating_sub(1);
                    return None;
                }
                let why = format!("a probe failed: {}", shortened(cause));
                Some(self.trip(why, config, now))
            }
            (Phase::HalfOpen { .. }, Verdict::Success) => {
                match config.slow_calls.filter(|_| slow) {
                    None => Some(self.close()),
                    Some(SlowCalls { after, .. }) => {
                        let why = format!("a probe took {after:?} or longer");
                        Some(self.trip(why, config, now))
                    }
                }
            }
            (Phase::HalfOpen { probes, .. }, Verdict::Nothing) => {
                *probes = probes.saturating_sub(1);
                None
            }
            (Phase::Closed, Verdict::Nothing)
            | (Phase::ForcedClosed | Phase::ForcedOpen | Phase::Open { .. }, _) => None,
        }
    }

    /// Returns `true` if calls overlap and the last failure that counted was just now.
    fn is_same_event(&self, now: Instant) -> bool {
        let within = |at: Option<Instant>, time| at.is_some_and(|at| now < at + time);
        within(self.overlapped_at, OVERLAP) && within(self.counted_at, EVENT)
    }

    /// Closes it, unless an operator forced it.
    pub(crate) fn reset(&mut self) -> Option<Change> {
        let is_open = matches!(self.phase, Phase::HalfOpen { .. } | Phase::Open { .. });
        if is_open || matches!(self.phase, Phase::Closed) {
            self.close();
        }
        is_open.then_some(Change::Closed)
    }

    /// Holds it closed or open; `None` ends that, and it is closed and counts again.
    pub(crate) fn force(&mut self, open: Option<bool>) {
        match (open, self.phase) {
            (Some(true), _) => self.enter(Phase::ForcedOpen),
            (Some(false), _) => self.enter(Phase::ForcedClosed),
            (None, Phase::ForcedClosed | Phase::ForcedOpen) => {
                self.close();
            }
            (None, _) => {}
        }
    }

    /// Notes whether the server's connection is there. It makes the server unavailable, and refuses
    /// no call: one that has nowhere else to go finds out for itself.
    pub(crate) const fn set_connected(&mut self, connected: bool) {
        self.connected = connected;
    }

    const fn ticket(&self, is_extra: bool) -> Ticket {
        Ticket {
            generation: self.generation,
            known: self.streak.known(),
            number: self.admitted,
            is_extra,
        }
    }

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
            _ if !self.connected => BreakerState::Disconnected,
            Phase::Closed => BreakerState::Closed,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
            Phase::Open { .. } => BreakerState::Open,
        }
    }

    /// Returns how long until a probe is admitted; `None` while closed or forced.
    pub(crate) fn time_to_probe(&self, config: &BreakerConfig, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::ForcedOpen => None,
            Phase::HalfOpen { .. } | Phase::Open { .. } => {
                self.time_to_pass(Risk::Safe, config, now)
            }
        }
    }

    /// Returns why the breaker opens after an outcome; `cause` is that of a failure. A good outcome
    /// never opens it, even if it is the one that makes the window large enough.
    fn reason(
        &self,
        cause: Option<&dyn fmt::Display>,
        slow: bool,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<String> {
        if let Some(cause) = cause.filter(|_| self.streak.reaches(config.failures)) {
            let cause = shortened(cause);
            return Some(match self.streak.failures() {
                1 => format!("a failure: {cause}"),
                failures => format!("{failures} failures in a row, the last: {cause}"),
            });
        }
        let counts = self.counts(now)?;
        if counts.calls < config.min_calls {
            return None;
        }
        let (calls, window) = (counts.calls, config.window);
        let reaches = |percent: &u32| counts.reaches(counts.failed, *percent);
        if let Some(cause) = cause.filter(|_| config.failure_rate.as_ref().is_some_and(reaches)) {
            let (failed, cause) = (counts.failed, shortened(cause));
            return Some(format!(
                "{failed} of {calls} calls within {window:?} failed, the last: {cause}"
            ));
        }
        let reaches = |share: &SlowCalls| slow && counts.reaches(counts.slow, share.rate);
        let (after, slow) = (config.slow_calls.filter(reaches)?.after, counts.slow);
        Some(format!(
            "{slow} of {calls} calls within {window:?} took {after:?} or longer"
        ))
    }

    fn trip(&mut self, why: String, config: &BreakerConfig, now: Instant) -> Change {
        self.trips = self.trips.saturating_add(1);
        let open_for = config.open_time_after(self.trips);
        self.enter(Phase::Open {
            until: now + open_for,
        });
        Change::Opened { why, open_for }
    }

    fn close(&mut self) -> Change {
        self.trips = 0;
        self.enter(Phase::Closed);
        Change::Closed
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation = self.generation.wrapping_add(1);
        self.streak.clear();
        if let Some(window) = &mut self.window {
            window.clear();
        }
    }
}

/// Returns the beginning of a cause.
fn shortened(cause: &dyn fmt::Display) -> String {
    let mut cause = cause.to_string();
    if let Some((end, _)) = cause.char_indices().nth(MAX_CAUSE_CHARS) {
        cause.truncate(end);
        cause.push('…');
    }
    cause
}

const MAX_CAUSE_CHARS: usize = 200;

#[cfg(test)]
mod tests;
