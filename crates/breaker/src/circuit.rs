//! One breaker, shared: the state machine behind a word that says "go on" without a lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

use tollgate_core::InvalidConfig;

use crate::state::{Change, State, Ticket};
use crate::word::Word;
use crate::{BreakerConfig, BreakerState, Permit, Rejection, Verdict};

/// One breaker by itself.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_breaker::{BreakerConfig, Circuit};
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
/// # Ok::<_, tollgate_core::InvalidConfig>(())
/// ```
#[derive(Debug)]
pub struct Circuit {
    name: Box<str>,
    config: BreakerConfig,
    /// What callers need to know of `guarded`: written under its lock, read without.
    word: AtomicU64,
    guarded: Mutex<Guarded>,
}

#[derive(Debug)]
struct Guarded {
    state: State,
    last_trip: Option<Arc<str>>,
}

/// All that is known of a breaker at one moment.
pub(crate) struct Reading {
    pub(crate) state: BreakerState,
    pub(crate) failures: u32,
    pub(crate) last_trip: Option<Arc<str>>,
    pub(crate) time_to_probe: Option<Duration>,
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
        let state = State::new();
        Self {
            name: name.into(),
            config,
            word: AtomicU64::new(Word::of(&state).0),
            guarded: Mutex::new(Guarded {
                state,
                last_trip: None,
            }),
        }
    }

    /// Lets a call through, or refuses it. Dropping the permit counts as nothing.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why, and how long until the next probe.
    pub fn admit(self: Arc<Self>) -> Result<Permit, Rejection> {
        let word = self.word();
        let ticket = if word.lets_all_through() {
            word.ticket()
        } else {
            self.admit_probe()?
        };
        Ok(Permit::new(self, ticket))
    }

    /// Says whether a call would be let through. Takes no place.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.word().lets_all_through() || {
            let now = Instant::now();
            self.guarded.lock().state.is_available(&self.config, now)
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.guarded.lock().state.state()
    }

    /// Closes it, unless an operator forced it.
    pub fn reset(&self) {
        let change = self.change(|guarded| guarded.state.reset());
        self.tell(change, None);
    }

    /// Holds it open until [`release`](Self::release)d.
    pub fn force_open(&self) {
        self.change(|guarded| guarded.state.force_open());
    }

    /// Holds it closed until [`release`](Self::release)d.
    pub fn force_closed(&self) {
        self.change(|guarded| guarded.state.force_closed());
    }

    /// Ends a forced state: the breaker is closed and counts again. Nothing happens if it is not
    /// forced.
    pub fn release(&self) {
        self.change(|guarded| guarded.state.release());
    }

    /// Says whether it holds nothing that a new one would not.
    pub(crate) fn is_idle(&self) -> bool {
        self.word().is_clean()
    }

    pub(crate) fn read(&self) -> Reading {
        let now = Instant::now();
        let guarded = self.guarded.lock();
        Reading {
            state: guarded.state.state(),
            failures: guarded.state.failures(),
            last_trip: guarded.last_trip.clone(),
            time_to_probe: guarded.state.time_to_probe(&self.config, now),
        }
    }

    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    #[cold]
    fn admit_probe(&self) -> Result<Ticket, Rejection> {
        let now = Instant::now();
        self.change(|guarded| {
            guarded
                .state
                .admit(&self.config, now)
                .map_err(|time_to_probe| {
                    let last_trip = guarded.last_trip.clone();
                    Rejection::new(guarded.state.state(), last_trip, time_to_probe)
                })
        })
    }

    /// `cause` is only asked when a failure opens the breaker.
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        verdict: Verdict,
        cause: Option<&dyn fmt::Display>,
    ) {
        let word = self.word();
        if word.ticket() != ticket || word.is_indifferent_to(verdict) {
            return;
        }
        let now = Instant::now();
        let (change, trip) = self.change(|guarded| {
            let change = guarded.state.settle(ticket, verdict, &self.config, now);
            if let Some(Change::Opened { failures, .. }) = change {
                guarded.last_trip = Some(describe(failures, cause));
            }
            (change, guarded.last_trip.clone())
        });
        self.tell(change, trip.as_deref());
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
            Some(Change::Opened { open_for, .. }) => warn!(
                breaker = %self.name,
                open_for_secs = open_for.as_secs_f64(),
                reason = trip.unwrap_or_default(),
                "breaker opened"
            ),
            Some(Change::Closed) => info!(breaker = %self.name, "breaker closed"),
            None => {}
        }
    }
}

/// Says why a breaker opened. What a server wrote may be long: only its beginning is kept.
fn describe(failures: u32, cause: Option<&dyn fmt::Display>) -> Arc<str> {
    let mut cause = cause.map(ToString::to_string).unwrap_or_default();
    if let Some((end, _)) = cause.char_indices().nth(LONGEST_CAUSE) {
        cause.truncate(end);
        cause.push('…');
    }
    match failures {
        0 => format!("a probe failed: {cause}"),
        1 => format!("a failure: {cause}"),
        _ => format!("{failures} failures in a row, the last: {cause}"),
    }
    .into()
}

/// In characters.
const LONGEST_CAUSE: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cause_is_cut_between_characters() {
        let told = describe(3, Some(&"ü".repeat(5000)));
        assert!(told.starts_with("3 failures in a row, the last: üüü"));
        assert!(told.ends_with("ü…"));
        assert!(told.chars().count() < 250);
    }

    #[test]
    fn a_success_that_changes_nothing_writes_nothing() {
        let circuit = Arc::new(Circuit::of_valid("x", BreakerConfig::default()));
        // with the lock held, anything but a plain load would wait forever
        let held = circuit.guarded.lock();
        for _ in 0..3 {
            match circuit.clone().admit() {
                Ok(permit) => permit.succeed(),
                Err(rejection) => panic!("{rejection}"),
            }
            drop(circuit.clone().admit());
        }
        drop(held);
        assert!(circuit.is_idle());
    }

    #[test]
    fn threads_that_fail_together_trip_it_once() {
        let config = BreakerConfig::default().with_failures(50);
        let circuit = Arc::new(Circuit::of_valid("x", config));
        let permits: Vec<_> = (0..100).map(|_| circuit.clone().admit().unwrap()).collect();
        std::thread::scope(|scope| {
            for permit in permits {
                scope.spawn(move || permit.fail(&"down"));
            }
        });
        let reading = circuit.read();
        assert_eq!(reading.state, BreakerState::Open);
        assert_eq!(
            reading.last_trip.as_deref(),
            Some("50 failures in a row, the last: down")
        );
        assert!(reading.time_to_probe <= Some(config.open_time));
    }

    #[test]
    fn threads_that_ask_together_get_just_the_probes() {
        let config = BreakerConfig::default()
            .with_failures(1)
            .with_open_time(Duration::from_nanos(1))
            .with_probes(3)
            .with_probe_limit(Duration::from_secs(3600));
        for _ in 0..50 {
            let circuit = Arc::new(Circuit::of_valid("x", config));
            circuit.clone().admit().unwrap().fail(&"down");
            let start = std::sync::Barrier::new(8);
            // kept until all have asked: a permit that is dropped gives its place back
            let permits = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        permits.lock().extend(circuit.clone().admit());
                    });
                }
            });
            assert_eq!(permits.lock().len(), 3);
            drop(permits);
            assert!(circuit.is_available());
        }
    }
}
