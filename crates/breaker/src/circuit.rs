//! One breaker, shared: the state machine behind a mutex.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callward_core::{InvalidConfig, ServerId};
#[cfg(not(all(test, shuttle)))]
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{info, warn};

#[cfg(all(test, shuttle))]
use crate::interleavings::Mutex;
use crate::permit::Permit;
use crate::state::{Change, Outcome, Risk, State, Ticket};
use crate::window::Counts;
use crate::{BreakerConfig, BreakerState, Rejection, Subject};

/// One breaker by itself.
///
/// ```
/// use std::sync::Arc;
/// use callward_breaker::{BreakerConfig, Circuit};
///
/// let config = BreakerConfig::default().with_failures(2);
/// let scans = Arc::new(Circuit::new("discovery of orders", config)?);
/// for _ in 0..2 {
///     match scans.admit() {
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
    inner: Mutex<Inner>,
    /// Notified when it opens, and when an operator or a new connection changes it.
    changed: Notify,
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    last_trip: Option<Arc<str>>,
    counted: Counted,
}

/// A change of the state of a set's breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerChange {
    /// The server.
    pub server: ServerId,
    /// What of the server the breaker is for.
    pub subject: Subject,
    /// The state before.
    pub from: BreakerState,
    /// The state now.
    pub to: BreakerState,
    /// Why, in a few words.
    pub reason: Arc<str>,
}

/// Called for each change of state, with no lock held. Shared by all breakers of a set.
#[derive(Clone, Default)]
pub(crate) struct Observer(pub(crate) Arc<OnceLock<Box<ChangeFn>>>);

type ChangeFn = dyn Fn(BreakerChange) + Send + Sync;

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// Whom to notify of changes, and what the breaker is for.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) observer: Observer,
    pub(crate) server: ServerId,
    pub(crate) subject: Subject,
}

/// What a breaker did since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) refused: u64,
}

impl Counted {
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
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(name: impl Into<Box<str>>, config: BreakerConfig) -> Result<Self, InvalidConfig> {
        let circuit = || Self::of_valid(name, config, None);
        config.validate().map(|()| circuit())
    }

    pub(crate) fn of_valid(
        name: impl Into<Box<str>>,
        config: BreakerConfig,
        watch: Option<Watch>,
    ) -> Self {
        Self {
            name: name.into(),
            config,
            inner: Mutex::new(Inner {
                state: State::new(&config, Instant::now()),
                last_trip: None,
                counted: Counted::default(),
            }),
            changed: Notify::new(),
            watch,
        }
    }

    /// Admits a safe call, or refuses it. A dropped permit counts as nothing.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    pub fn admit(self: &Arc<Self>) -> Result<Permit, Rejection> {
        self.admit_risk(Risk::Safe)
    }

    /// Admits a call, or refuses it. A write is also refused where a safe call would be a probe.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    pub fn admit_risk(self: &Arc<Self>, risk: Risk) -> Result<Permit, Rejection> {
        let admitted = self.change(|inner, config, now| {
            let admitted = inner.state.admit(risk, config, now);
            let result = admitted.map_err(|wait| {
                inner.counted.refused += 1;
                let to_probe = inner.state.time_to_probe(config, now);
                // a safe call would be admitted now: only the write has to wait
                let is_write_held = to_probe == Some(Duration::ZERO);
                let wait = if is_write_held { wait } else { to_probe };
                let last_trip = inner.last_trip.clone();
                Rejection::new(inner.state.state(), last_trip, wait, is_write_held)
            });
            (result, "a probe is sent".into())
        });
        admitted.map(|ticket| Permit::new(self.clone(), ticket))
    }

    /// Admits a read although the breaker is open; `None` if an operator holds it open.
    pub(crate) fn admit_extra(self: &Arc<Self>) -> Option<Permit> {
        let ticket = self.inner.lock().state.admit_extra()?;
        Some(Permit::new(self.clone(), ticket))
    }

    /// Returns `true` if a safe call would be admitted and the connection is there. Takes no place.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.availability(Risk::Safe).is_ok()
    }

    /// Checks whether such a call would be admitted now. Takes no place.
    ///
    /// # Errors
    ///
    /// The state that speaks against it.
    pub fn availability(&self, risk: Risk) -> Result<(), BreakerState> {
        let state = &self.inner.lock().state;
        match state.state() {
            BreakerState::Closed | BreakerState::ForcedClosed => Ok(()),
            BreakerState::Open | BreakerState::HalfOpen
                if state.time_to_pass(risk, &self.config, Instant::now())
                    == Some(Duration::ZERO) =>
            {
                Ok(())
            }
            refuses => Err(refuses),
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.inner.lock().state.state()
    }

    /// Returns how long until a probe is admitted, zero if the next safe call would be one; `None`
    /// while closed or forced.
    #[must_use]
    pub fn time_to_probe(&self) -> Option<Duration> {
        self.inner
            .lock()
            .state
            .time_to_probe(&self.config, Instant::now())
    }

    /// Waits until a probe would be admitted, for a caller that has a harmless call to offer.
    pub async fn probe_due(&self) {
        loop {
            // made before the check, so that it misses no change
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
        self.change(|inner, _, _| {
            let change = inner.state.reset();
            inner.counted.count(change);
            ((), "the connection is new".into())
        });
        self.changed.notify_waiters();
    }

    /// Notes whether the server's connection is there. While it is not, the server is
    /// [unavailable](Self::is_available); no call is refused for it.
    pub fn set_connected(&self, connected: bool) {
        let reason = if connected {
            "its connection is back"
        } else {
            "its connection is lost"
        };
        self.change(|inner, _, _| (inner.state.set_connected(connected), reason.into()));
    }

    /// Adds what another breaker did to its own counts: that one is forgotten.
    pub(crate) fn absorb(&self, other: Counted) {
        let counted = &mut self.inner.lock().counted;
        counted.opened += other.opened;
        counted.closed += other.closed;
        counted.refused += other.refused;
    }

    /// Holds it open until [`release`](Self::release)d.
    pub fn force_open(&self) {
        self.force(State::force_open, "an operator holds it open");
    }

    /// Holds it closed until [`release`](Self::release)d.
    pub fn force_closed(&self) {
        self.force(State::force_closed, "an operator holds it closed");
    }

    /// Ends a forced state: the breaker is closed and counts again.
    pub fn release(&self) {
        self.force(State::release, "an operator released it");
    }

    fn force(&self, act: fn(&mut State), reason: &'static str) {
        self.change(|inner, _, _| (act(&mut inner.state), reason.into()));
        self.changed.notify_waiters();
    }

    /// Returns `true` if calls are timed.
    pub(crate) const fn takes_time(&self) -> bool {
        self.config.slow_calls.is_some()
    }

    pub(crate) fn read(&self) -> Reading {
        let now = Instant::now();
        let inner = self.inner.lock();
        Reading {
            state: inner.state.state(),
            failures: inner.state.failures(),
            counts: inner.state.counts(now),
            last_trip: inner.last_trip.clone(),
            time_to_probe: inner.state.time_to_probe(&self.config, now),
            counted: inner.counted,
        }
    }

    /// Takes the outcome of a call that was admitted; `cause` is that of a failure.
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        outcome: Outcome,
        cause: Option<&dyn fmt::Display>,
    ) {
        let opened = self.change(|inner, config, now| {
            let change = inner.state.settle(ticket, outcome, config, now);
            inner.counted.count(change);
            let Some(Change::Opened { trip, open_for }) = change else {
                return (None, "a probe succeeded".into());
            };
            let cause = cause.map(ToString::to_string).unwrap_or_default();
            let trip = trip.describe(config, &cause);
            inner.last_trip = Some(trip.as_str().into());
            (Some(open_for), trip.into())
        });
        if let Some(open_for) = opened {
            self.changed.notify_waiters();
            let open_for_secs = open_for.as_secs_f64();
            warn!(breaker = %self.name, open_for_secs, "breaker opened");
        }
    }

    /// Changes the state, and reports the change after the lock is released.
    fn change<T>(
        &self,
        act: impl FnOnce(&mut Inner, &BreakerConfig, Instant) -> (T, Cow<'static, str>),
    ) -> T {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let from = inner.state.state();
        let (result, reason) = act(&mut inner, &self.config, now);
        let to = inner.state.state();
        drop(inner);
        if from != to {
            self.report(from, to, &reason);
        }
        result
    }

    #[cold]
    fn report(&self, from: BreakerState, to: BreakerState, reason: &str) {
        info!(breaker = %self.name, %from, %to, reason, "breaker changed");
        if let Some(watch) = &self.watch
            && let Some(observer) = watch.observer.0.get()
        {
            observer(BreakerChange {
                server: watch.server.clone(),
                subject: watch.subject.clone(),
                from,
                to,
                reason: reason.into(),
            });
        }
    }
}

impl Counted {
    const fn count(&mut self, change: Option<Change>) {
        match change {
            Some(Change::Opened { .. }) => self.opened += 1,
            Some(Change::Closed) => self.closed += 1,
            None => {}
        }
    }
}

impl Reading {
    /// Returns `true` if it holds nothing that a new breaker would not.
    pub(crate) fn is_new(&self) -> bool {
        let counted = self.counts.is_some_and(|counts| counts.calls > 0);
        self.state == BreakerState::Closed && self.failures == 0 && !counted
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn circuit(config: BreakerConfig) -> Arc<Circuit> {
        Arc::new(Circuit::of_valid("x", config, None))
    }

    #[test]
    fn concurrent_failures_of_one_event_count_once() {
        let config = BreakerConfig::default();
        let circuit = circuit(config);
        for failures in 1..=3 {
            let permits: Vec<_> = (0..100).map(|_| circuit.admit().unwrap()).collect();
            std::thread::scope(|scope| {
                for permit in permits {
                    scope.spawn(move || permit.fail(&"down"));
                }
            });
            let counted = circuit.read().failures;
            assert_eq!(counted, if failures < 3 { failures } else { 0 });
        }
        let reading = circuit.read();
        assert_eq!(
            (reading.state, reading.counted.opened),
            (BreakerState::Open, 1)
        );
        assert_eq!(
            reading.last_trip.as_deref(),
            Some("3 failures in a row, the last: down")
        );
        assert!(reading.time_to_probe <= Some(config.open_time));
    }

    #[test]
    fn concurrent_callers_get_exactly_the_probes() {
        let config = BreakerConfig::default()
            .with_failures(1)
            .with_open_time(Duration::from_nanos(1))
            .with_probes(3)
            .with_probe_limit(Duration::from_secs(3600));
        for _ in 0..50 {
            let circuit = circuit(config);
            circuit.admit().unwrap().fail(&"down");
            let start = std::sync::Barrier::new(8);
            // kept until all have asked: a permit that is dropped gives its place back
            let permits = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        permits.lock().extend(circuit.admit());
                    });
                }
            });
            assert_eq!(permits.lock().len(), 3);
            drop(permits);
            assert!(circuit.is_available());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_extra_read_closes_an_open_breaker_and_never_counts_against_it() {
        let circuit = circuit(BreakerConfig::default().with_failures(1));
        circuit.admit().unwrap().fail(&"down");
        for _ in 0..5 {
            circuit.admit_extra().unwrap().fail(&"down");
        }
        let reading = circuit.read();
        assert_eq!(
            (reading.state, reading.counted.opened),
            (BreakerState::Open, 1)
        );
        circuit.admit_extra().unwrap().succeed();
        assert_eq!(circuit.state(), BreakerState::Closed);
        circuit.force_open();
        assert!(circuit.admit_extra().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_makes_it_unavailable_and_refuses_nothing() {
        let circuit = circuit(BreakerConfig::default());
        circuit.set_connected(false);
        assert_eq!(
            circuit.availability(Risk::Safe),
            Err(BreakerState::Disconnected)
        );
        drop(circuit.admit().unwrap());
        circuit.set_connected(true);
        assert!(circuit.is_available());
    }
}
