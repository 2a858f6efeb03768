//! One breaker, shared: the state machine behind a mutex, and the permits of calls.

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
use crate::state::{State, Ticket};
use crate::status::Key;
use crate::streak::Fault;
use crate::{BreakerConfig, BreakerState, BreakerStatus, Rejection, Subject, Verdict};

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
    /// Calls are timed.
    pub(crate) takes_time: bool,
    state: Mutex<State>,
    /// Notified when it opens, and when its state changes.
    changed: Notify,
    observer: Observer,
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
            takes_time: config.slow_after.is_some(),
            state: Mutex::new(State::new(config, Instant::now())),
            changed: Notify::new(),
            observer,
        }
    }

    /// Makes a breaker of its own.
    #[cfg(all(test, shuttle))]
    pub(crate) fn alone(config: BreakerConfig) -> Arc<Self> {
        let server = ServerId::new("x").unwrap();
        let key = Key::new(&server, &Subject::Server, None);
        Arc::new(Self::new(key, config, Observer::default()))
    }

    /// Admits a safe call, or refuses it. A dropped permit counts as nothing.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    pub fn admit(self: &Arc<Self>) -> Result<Permit, Rejection> {
        self.admit_call(false, false)
    }

    /// Admits a call, or refuses it. A write is also refused where a safe call would be a probe; an
    /// extra call is refused only if an operator holds the breaker open.
    pub(crate) fn admit_call(
        self: &Arc<Self>,
        is_write: bool,
        is_extra: bool,
    ) -> Result<Permit, Rejection> {
        let admit = |state: &mut State, now| state.admit(is_write, is_extra, now);
        Ok(Permit {
            ticket: Some(self.change("a probe is sent", admit)?),
            circuit: self.clone(),
            fault: Fault::default(),
            waited: Duration::ZERO,
        })
    }

    /// Returns `true` if a safe call would be admitted and the connection is there. Takes no place.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.availability(false).is_ok()
    }

    /// Checks whether such a call would be admitted now, or returns the state that refuses it.
    /// Takes no place.
    pub(crate) fn availability(&self, is_write: bool) -> Result<(), BreakerState> {
        let state = self.state.lock();
        let passes = state.time_to_pass(is_write, Instant::now()) == Some(Duration::ZERO);
        match state.state() {
            refuses if !passes || refuses == BreakerState::Disconnected => Err(refuses),
            _ => Ok(()),
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.state.lock().state()
    }

    /// Returns how long until a probe is admitted, zero if the next safe call would be one; `None`
    /// while closed or forced.
    #[must_use]
    pub fn time_to_probe(&self) -> Option<Duration> {
        self.state.lock().time_to_probe(Instant::now())
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

    /// Notes whether the server's connection is there. While it is not, the server is
    /// [unavailable](Self::is_available); no call is refused for it.
    pub fn set_connected(&self, connected: bool) {
        let reason = match connected {
            true => "its connection is back",
            false => "its connection is lost",
        };
        self.change(reason, |state, _| state.is_lost = !connected);
    }

    /// Adds the counts of another breaker, which is forgotten.
    pub(crate) fn absorb(&self, other: &BreakerStatus) {
        let mut state = self.state.lock();
        state.opened += other.opened;
        state.closed += other.closed;
        state.refused += other.refused;
    }

    pub(crate) fn status(&self) -> BreakerStatus {
        let (key, now, state) = (&self.key, Instant::now(), self.state.lock());
        BreakerStatus {
            server: key.server.clone(),
            subject: key.subject.clone(),
            instance: key.instance(),
            state: state.state(),
            failures: state.failures(),
            window: state.counts(now),
            last_trip: state.last_trip.clone(),
            opened: state.opened,
            closed: state.closed,
            refused: state.refused,
            time_to_probe: state.time_to_probe(now),
        }
    }

    /// Changes the state, and reports the change after the lock is released.
    pub(crate) fn change<T>(&self, reason: &str, act: impl FnOnce(&mut State, Instant) -> T) -> T {
        let now = Instant::now();
        let mut state = self.state.lock();
        let (from, opened) = (state.state(), state.opened);
        let result = act(&mut state, now);
        let to = state.state();
        let has_opened = state.opened > opened;
        let trip = has_opened.then(|| state.last_trip.clone()).flatten();
        drop(state);
        if from != to || trip.is_some() {
            self.changed.notify_waiters();
            self.report(from, to, trip.unwrap_or_else(|| reason.into()));
        }
        result
    }

    #[cold]
    fn report(&self, from: BreakerState, to: BreakerState, reason: Arc<str>) {
        info!(breaker = %self.key, %from, %to, %reason, "breaker changed");
        if to == BreakerState::Open && from != BreakerState::Disconnected {
            let open_for_secs = self.time_to_probe().map(|time| time.as_secs_f64());
            warn!(breaker = %self.key, open_for_secs, "breaker opened");
        }
        if let Some(observer) = self.observer.0.get()
            && self.key.owner.is_none()
            && from != to
        {
            observer(BreakerChange {
                server: self.key.server.clone(),
                subject: self.key.subject.clone(),
                from,
                to,
                reason,
            });
        }
    }
}

/// The right to make one call through a [`Circuit`]. Dropped unsettled, it counts as nothing, and a
/// probe's place goes to the next call.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once counts as nothing"]
pub struct Permit {
    circuit: Arc<Circuit>,
    /// `None` once it is settled.
    ticket: Option<Ticket>,
    /// What is known of the cause, should the call fail.
    pub(crate) fault: Fault,
    /// How long the call waited for a person, which makes no call slow.
    pub(crate) waited: Duration,
}

impl Permit {
    /// The call succeeded.
    pub fn succeed(mut self) {
        self.settle(Verdict::Success, &"");
    }

    /// The call failed. The cause is only read if this failure opens the breaker.
    pub fn fail(mut self, cause: &dyn fmt::Display) {
        self.settle(Verdict::Failure, cause);
    }

    fn settle(&mut self, verdict: Verdict, cause: &dyn fmt::Display) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let (fault, waited) = (self.fault, self.waited);
        self.circuit.change("a probe succeeded", |state, now| {
            state.settle(ticket, verdict, fault, waited, cause, now);
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.settle(Verdict::Nothing, &"");
    }
}
