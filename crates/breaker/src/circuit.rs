//! One breaker, shared: the state machine behind a mutex.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callward_core::ServerId;
#[cfg(not(all(test, shuttle)))]
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{info, warn};

#[cfg(all(test, shuttle))]
use crate::interleavings::Mutex;
use crate::permit::Permit;
use crate::state::{Change, Outcome, Risk, State, Ticket};
use crate::subject::Key;
use crate::{BreakerConfig, BreakerState, BreakerStatus, Rejection, Subject};

/// One breaker of a [`BreakerSet`](crate::BreakerSet).
///
/// ```
/// use callward_breaker::{BreakerSet, Subject};
/// use callward_core::ServerId;
///
/// let server = ServerId::new("orders")?;
/// let orders = BreakerSet::default().circuit(&server, Subject::Server);
/// for _ in 0..5 {
///     match orders.admit() {
///         Ok(permit) => permit.fail(&"connection refused"),
///         Err(rejection) => panic!("{rejection}"),
///     }
/// }
/// assert!(orders.admit().is_err());
/// # Ok::<_, callward_core::InvalidName>(())
/// ```
#[derive(Debug)]
pub struct Circuit {
    key: Key,
    config: BreakerConfig,
    inner: Mutex<Inner>,
    /// Notified when it opens, and when an operator or a new connection changes it.
    changed: Notify,
    observer: Observer,
}

#[derive(Debug)]
struct Inner {
    state: State,
    last_trip: Option<Arc<str>>,
    opened: u64,
    closed: u64,
    refused: u64,
}

/// A change of the state of a breaker that all callers share.
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

impl Circuit {
    /// Makes a closed breaker. `config` is valid.
    pub(crate) fn new(key: Key, config: BreakerConfig, observer: Observer) -> Self {
        Self {
            key,
            inner: Mutex::new(Inner {
                state: State::new(&config, Instant::now()),
                last_trip: None,
                opened: 0,
                closed: 0,
                refused: 0,
            }),
            config,
            changed: Notify::new(),
            observer,
        }
    }

    /// Makes a breaker of its own.
    #[cfg(test)]
    pub(crate) fn alone(config: BreakerConfig) -> Arc<Self> {
        let server = ServerId::new("x").unwrap();
        let key = Key::new(&server, Subject::Server, None);
        Arc::new(Self::new(key, config, Observer::default()))
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
    pub(crate) fn admit_risk(self: &Arc<Self>, risk: Risk) -> Result<Permit, Rejection> {
        let admitted = self.change(|inner, config, now| {
            let admitted = inner.state.admit(risk, config, now).map_err(|wait| {
                inner.refused += 1;
                let to_probe = inner.state.time_to_probe(config, now);
                // a safe call would be admitted now: only the write has to wait
                let is_write_held = to_probe == Some(Duration::ZERO);
                Rejection {
                    state: inner.state.state(),
                    last_trip: inner.last_trip.clone(),
                    time_to_probe: if is_write_held { wait } else { to_probe },
                    is_write_held,
                }
            });
            (admitted, "a probe is sent".into())
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

    /// Checks whether such a call would be admitted now, or returns the state that refuses it.
    /// Takes no place.
    pub(crate) fn availability(&self, risk: Risk) -> Result<(), BreakerState> {
        let state = &self.inner.lock().state;
        let wait = state.time_to_pass(risk, &self.config, Instant::now());
        match state.state() {
            refuses @ BreakerState::Disconnected => Err(refuses),
            _ if wait == Some(Duration::ZERO) => Ok(()),
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
        let state = &self.inner.lock().state;
        state.time_to_probe(&self.config, Instant::now())
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
    pub(crate) fn reset(&self) {
        self.change(|inner, _, _| {
            let change = inner.state.reset();
            inner.count(change.as_ref());
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

    /// Adds the counts of another breaker, which is forgotten.
    pub(crate) fn absorb(&self, other: &BreakerStatus) {
        let inner = &mut *self.inner.lock();
        inner.opened += other.opened;
        inner.closed += other.closed;
        inner.refused += other.refused;
    }

    /// Holds it open or closed; `None` ends that, and it is closed and counts again.
    pub(crate) fn force(&self, open: Option<bool>) {
        let reason = match open {
            Some(true) => "an operator holds it open",
            Some(false) => "an operator holds it closed",
            None => "an operator released it",
        };
        self.change(|inner, _, _| (inner.state.force(open), reason.into()));
        self.changed.notify_waiters();
    }

    /// Returns `true` if calls are timed.
    pub(crate) const fn takes_time(&self) -> bool {
        self.config.slow_calls.is_some()
    }

    pub(crate) fn status(&self) -> BreakerStatus {
        let now = Instant::now();
        let inner = self.inner.lock();
        BreakerStatus {
            server: self.key.server.clone(),
            subject: self.key.subject.clone(),
            instance: self.key.owner.as_ref().map(ToString::to_string),
            state: inner.state.state(),
            failures: inner.state.failures(),
            window: inner.state.counts(now),
            last_trip: inner.last_trip.clone(),
            opened: inner.opened,
            closed: inner.closed,
            refused: inner.refused,
            time_to_probe: inner.state.time_to_probe(&self.config, now),
        }
    }

    /// Takes the outcome of a call that was admitted.
    pub(crate) fn settle(&self, ticket: Ticket, outcome: Outcome<'_>) {
        let opened = self.change(|inner, config, now| {
            let change = inner.state.settle(ticket, outcome, config, now);
            inner.count(change.as_ref());
            let Some(Change::Opened { why, open_for }) = change else {
                return (None, "a probe succeeded".into());
            };
            inner.last_trip = Some(why.as_str().into());
            (Some(open_for), why.into())
        });
        if let Some(open_for) = opened {
            self.changed.notify_waiters();
            let open_for_secs = open_for.as_secs_f64();
            warn!(breaker = %self.key, open_for_secs, "breaker opened");
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
        info!(breaker = %self.key, %from, %to, reason, "breaker changed");
        if let Some(observer) = self.observer.0.get()
            && self.key.owner.is_none()
        {
            observer(BreakerChange {
                server: self.key.server.clone(),
                subject: self.key.subject.clone(),
                from,
                to,
                reason: reason.into(),
            });
        }
    }
}

impl Inner {
    const fn count(&mut self, change: Option<&Change>) {
        match change {
            Some(Change::Opened { .. }) => self.opened += 1,
            Some(Change::Closed) => self.closed += 1,
            None => {}
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn concurrent_failures_of_one_event_count_once() {
        let config = BreakerConfig::default();
        let circuit = Circuit::alone(config);
        let permits: Vec<_> = (0..100).map(|_| circuit.admit().unwrap()).collect();
        std::thread::scope(|scope| {
            for permit in permits {
                scope.spawn(move || permit.fail(&"down"));
            }
        });
        let status = circuit.status();
        assert_eq!((status.state, status.failures), (BreakerState::Closed, 1));
    }

    #[test]
    fn concurrent_callers_get_exactly_the_probes() {
        let config = BreakerConfig::default()
            .with_failures(1)
            .with_open_time(Duration::from_nanos(1))
            .with_probes(3)
            .with_probe_limit(Duration::from_secs(3600));
        for _ in 0..50 {
            let circuit = Circuit::alone(config);
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
    async fn a_lost_connection_makes_it_unavailable_and_refuses_nothing() {
        let circuit = Circuit::alone(BreakerConfig::default());
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
