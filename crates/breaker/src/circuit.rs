//! One breaker, shared: the state machine behind a word that says "go on" without a lock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{info, warn};

use callward_core::InvalidConfig;

use crate::permit::{Cause, nanos};
use crate::state::{Change, Outcome, State, Ticket};
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::trip::describe;
use crate::window::Counts;
use crate::word::Word;
use crate::{BreakerConfig, BreakerState, Permit, Rejection, Risk, Verdict};

mod news;
mod under_way;

pub(crate) use news::News;
use under_way::UnderWay;

/// One breaker by itself.
///
/// ```
/// use std::sync::Arc;
/// use callward_breaker::{BreakerConfig, Circuit};
///
/// let config = BreakerConfig::default().with_failures(2);
/// let scans = Arc::new(Circuit::new("discovery of orders", config)?);
/// for _ in 0..2 {
///     match scans.clone().admit() {
///         Ok(permit) => permit.fail(&"connection refused"),
///         Err(rejection) => panic!("{rejection}"),
///     }
/// }
/// assert!(scans.admit().is_err());
/// # Ok::<_, callward_core::InvalidConfig>(())
/// ```
#[derive(Debug)]
pub struct Circuit {
    name: Box<str>,
    config: BreakerConfig,
    made: Instant,
    /// What callers need to know of `guarded`: written under its lock, read without.
    word: AtomicU64,
    under_way: UnderWay,
    guarded: Mutex<Guarded>,
    /// Told each time it opens, and with all other news.
    changed: Notify,
}

#[derive(Debug)]
struct Guarded {
    state: State,
    last_trip: Option<Arc<str>>,
    counted: Counted,
    /// Counts what whoever was refused in front of a probe waits for: ends of probes, and what an
    /// operator did, or a connection that is back.
    news: u64,
}

/// What a breaker did since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) refused: u64,
}

impl Counted {
    /// Says whether it did anything.
    pub(crate) const fn is_empty(self) -> bool {
        self.opened == 0 && self.closed == 0 && self.refused == 0
    }
}

/// All that is known of a breaker at one moment.
pub(crate) struct Reading {
    pub(crate) state: BreakerState,
    pub(crate) failures: u32,
    pub(crate) counts: Option<Counts>,
    pub(crate) last_trip: Option<Arc<str>>,
    pub(crate) time_to_probe: Option<Duration>,
    pub(crate) counted: Counted,
}

impl Circuit {
    /// Makes a closed breaker. The name is for the log.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(name: impl Into<Box<str>>, config: BreakerConfig) -> Result<Self, InvalidConfig> {
        config.validate().map(|()| Self::of_valid(name, config))
    }

    pub(crate) fn of_valid(name: impl Into<Box<str>>, config: BreakerConfig) -> Self {
        let made = Instant::now();
        let state = State::new(&config, made);
        Self {
            name: name.into(),
            config,
            made,
            word: AtomicU64::new(Word::of(&state).0),
            under_way: UnderWay::default(),
            guarded: Mutex::new(Guarded {
                state,
                last_trip: None,
                counted: Counted::default(),
                news: 0,
            }),
            changed: Notify::new(),
        }
    }

    /// Lets a safe call through, or refuses it. Dropping the permit counts as nothing.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    pub fn admit(self: Arc<Self>) -> Result<Permit, Rejection> {
        self.admit_risk(Risk::Safe)
    }

    /// Lets a call through, or refuses it: one that must not run twice also where a safe one would be
    /// let through as a probe.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    pub fn admit_risk(self: Arc<Self>, risk: Risk) -> Result<Permit, Rejection> {
        let ticket = self.enter(risk)?;
        Ok(Permit::new(self, ticket))
    }

    /// Does as [`admit`](Self::admit) does, for a call that does not outlive the breaker. It writes to
    /// no memory that threads share while the breaker is closed, not even to a count of references.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    #[inline]
    pub fn admit_ref(&self) -> Result<Permit<&Self>, Rejection> {
        let ticket = self.enter(Risk::Safe)?;
        Ok(Permit::new(self, ticket))
    }

    /// Says whether a safe call would be let through. Takes no place.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.is_available_to(Risk::Safe)
    }

    /// Says whether such a call would be let through. Takes no place.
    #[must_use]
    pub fn is_available_to(&self, risk: Risk) -> bool {
        self.word().lets_all_through() || {
            let now = Instant::now();
            let state = &self.guarded.lock().state;
            state.time_to_pass(risk, &self.config, now) == Some(Duration::ZERO)
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.guarded.lock().state.state()
    }

    /// Returns how long until a probe is let through, zero if the next safe call would be one; `None`
    /// while closed or forced.
    #[must_use]
    pub fn time_to_probe(&self) -> Option<Duration> {
        if self.word().lets_all_through() {
            return None;
        }
        let now = Instant::now();
        self.guarded.lock().state.time_to_probe(&self.config, now)
    }

    /// Waits until a probe would be let through: for as long as the breaker is closed or forced, and
    /// then until its time has come. For whoever has a harmless call to offer.
    pub async fn probe_due(&self) {
        loop {
            // made before the look, so that no opening falls between the two
            let changed = self.changed.notified();
            match self.time_to_probe() {
                Some(Duration::ZERO) => return,
                Some(wait) => tokio::time::sleep(wait).await,
                None => changed.await,
            }
        }
    }

    /// Closes it, unless an operator forced it.
    pub fn reset(&self) {
        let change = self.change(|guarded| {
            let change = guarded.state.reset();
            guarded.count(change.as_ref());
            guarded.news += 1;
            change
        });
        self.tell(change, None);
        self.changed.notify_waiters();
    }

    /// Counts what another breaker did as its own: that one is forgotten.
    pub(crate) fn absorb(&self, other: Counted) {
        let counted = &mut self.guarded.lock().counted;
        counted.opened += other.opened;
        counted.closed += other.closed;
        counted.refused += other.refused;
    }

    /// Holds it open until [`release`](Self::release)d.
    pub fn force_open(&self) {
        self.force(State::force_open);
    }

    /// Holds it closed until [`release`](Self::release)d.
    pub fn force_closed(&self) {
        self.force(State::force_closed);
    }

    /// Ends a forced state: the breaker is closed and counts again. Nothing happens if it is not
    /// forced.
    pub fn release(&self) {
        self.force(State::release);
    }

    fn force(&self, act: fn(&mut State)) {
        self.change(|guarded| {
            act(&mut guarded.state);
            guarded.news += 1;
        });
        self.changed.notify_waiters();
    }

    /// Takes note that a call is under way whose failure others may share. To be said after its ticket
    /// was given: whoever fails meanwhile then overlooks it rather than wait for it in vain.
    #[inline]
    pub(crate) fn begin(&self) {
        self.under_way.begin(|| self.time_now());
    }

    /// Takes note that it has ended. To be said before its outcome.
    #[inline]
    pub(crate) fn end(&self) {
        self.under_way.end();
    }

    /// Says whether calls are timed.
    #[inline]
    pub(crate) const fn takes_time(&self) -> bool {
        self.config.slow_calls.is_some()
    }

    /// Returns the time since this breaker was made, in nanoseconds, and never 0.
    pub(crate) fn time_now(&self) -> u64 {
        self.time_of(Instant::now())
    }

    fn time_of(&self, moment: Instant) -> u64 {
        nanos(moment.saturating_duration_since(self.made)).saturating_add(1)
    }

    pub(crate) fn read(&self) -> Reading {
        let now = Instant::now();
        let guarded = self.guarded.lock();
        Reading {
            state: guarded.state.state(),
            failures: guarded.state.failures(),
            counts: guarded.state.counts(now),
            last_trip: guarded.last_trip.clone(),
            time_to_probe: guarded.state.time_to_probe(&self.config, now),
            counted: guarded.counted,
        }
    }

    /// Says whether calls are let through only to find out how the server is, or not at all. Takes no
    /// lock.
    pub(crate) fn is_probing(&self) -> bool {
        !self.word().lets_all_through()
    }

    #[inline]
    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Lets a call through, or refuses it; the ticket must be settled.
    #[inline]
    pub(crate) fn enter(&self, risk: Risk) -> Result<Ticket, Rejection> {
        let word = self.word();
        if word.lets_through(risk) {
            Ok(word.ticket())
        } else {
            self.ask(risk)
        }
    }

    #[cold]
    fn ask(&self, risk: Risk) -> Result<Ticket, Rejection> {
        let now = Instant::now();
        self.change(|guarded| {
            let admitted = guarded.state.admit(risk, &self.config, now);
            admitted.map_err(|wait| {
                guarded.counted.refused += 1;
                let to_probe = guarded.state.time_to_probe(&self.config, now);
                let is_no_probe = to_probe == Some(Duration::ZERO);
                let state = guarded.state.state();
                // what is waited for is then the outcome of a probe, which may come at any moment
                let is_probed = state == BreakerState::HalfOpen || is_no_probe;
                Rejection::new(
                    state,
                    guarded.last_trip.clone(),
                    if is_no_probe { wait } else { to_probe },
                    is_no_probe,
                    is_probed.then_some(guarded.news),
                )
            })
        })
    }

    /// `timing` is when the call began, by [`time_now`](Self::time_now), or 0 where that does not count,
    /// and how long it then waited for a person; `cause` is that of a failure.
    #[inline]
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        verdict: Verdict,
        timing: (u64, u64),
        cause: Option<Cause<'_>>,
    ) {
        let word = self.word();
        if word.ticket().generation != ticket.generation || word.is_indifferent_to(verdict) {
            return;
        }
        self.count(ticket, verdict, timing, cause);
    }

    /// Does what an outcome does that changes something.
    #[inline(never)]
    fn count(
        &self,
        ticket: Ticket,
        verdict: Verdict,
        timing: (u64, u64),
        cause: Option<Cause<'_>>,
    ) {
        // one look at the clock tells both
        let now = Instant::now();
        let (began, waited) = timing;
        let took = (began > 0).then(|| {
            let took = self.time_of(now).saturating_sub(began);
            Duration::from_nanos(took.saturating_sub(waited))
        });
        let (change, trip, was_probe) = self.change(|guarded| {
            let state = &mut guarded.state;
            let fault = cause.map(|cause| cause.fault).unwrap_or_default();
            let was_probe = state.is_probe(ticket);
            guarded.news += u64::from(was_probe);
            let outcome = Outcome {
                verdict,
                fault,
                took,
                others: self.under_way.calls(),
                overlapped: self.under_way.have_overlapped(self.time_of(now)),
            };
            let change = state.settle(ticket, outcome, &self.config, now);
            guarded.count(change.as_ref());
            if let Some(Change::Opened { trip, .. }) = change {
                guarded.last_trip =
                    Some(describe(trip, &self.config, cause.map(|cause| cause.text)));
            }
            (change, guarded.last_trip.clone(), was_probe)
        });
        self.tell(change, trip.as_deref());
        if was_probe || matches!(change, Some(Change::Opened { .. })) {
            self.changed.notify_waiters();
        }
    }

    /// The only way to the state: what is published never lags behind it.
    fn change<T>(&self, act: impl FnOnce(&mut Guarded) -> T) -> T {
        let mut guarded = self.guarded.lock();
        let result = act(&mut guarded);
        self.word
            .store(Word::of(&guarded.state).0, Ordering::Release);
        result
    }

    fn tell(&self, change: Option<Change>, trip: Option<&str>) {
        match change {
            Some(Change::Opened { open_for, .. }) => {
                warn!(
                    breaker = %self.name,
                    open_for_secs = open_for.as_secs_f64(),
                    reason = trip.unwrap_or_default(),
                    "breaker opened"
                );
            }
            Some(Change::Closed) => info!(breaker = %self.name, "breaker closed"),
            None => {}
        }
    }
}

#[cfg(all(test, shuttle))]
impl Circuit {
    /// Panics if the word is not what the state is.
    pub(crate) fn assert_published(&self) {
        let of_state = Word::of(&self.guarded.lock().state);
        assert_eq!(self.word().0, of_state.0, "the word lags behind");
    }
}

impl Guarded {
    const fn count(&mut self, change: Option<&Change>) {
        match change {
            Some(Change::Opened { .. }) => self.counted.opened += 1,
            Some(Change::Closed) => self.counted.closed += 1,
            None => {}
        }
    }
}

impl Reading {
    /// Says whether it holds nothing that a new breaker would not.
    pub(crate) fn is_as_new(&self) -> bool {
        let counted = self.counts.is_some_and(|counts| counts.calls > 0);
        self.state == BreakerState::Closed && self.failures == 0 && !counted
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
