//! Single flight: identical reads that run at the same time run once.
//!
//! A flight is a semaphore with one permit. The call that holds the permit is the leader and runs;
//! the followers wait for the permit. A leader that answers closes the semaphore, and each follower
//! takes the answer. A leader that panics or is dropped returns the permit, and the follower that
//! waited longest gets it. A leader that fails returns two: with a server that fails each call, the
//! followers must not run one after the other. A leader whose client is asked something
//! [releases](Flight::release) the followers to run at once: its answer will be its own, and the
//! question may take minutes. No follower is stranded, as the permit is returned by dropping it; a
//! follower that stops waiting leaves the queue by dropping its wait.
//!
//! While its read set is being written, a call may only get the answer of a run that began after it
//! arrived. It joins the [next](Flights::next) flight: one that is not dispatched yet, and that is
//! not dispatched before the current one has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{ProgressSink, ToolCall, ToolOutput};
use foldhash::fast::RandomState;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::sync::{AtomicUsize, Mutex, Ordering, Semaphore, SemaphorePermit};

#[cfg(all(test, shuttle))]
mod interleavings;

/// All flights of one cache, by key. The key holds the epoch, so that a read that begins after a
/// write never joins one that began before it.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<u128, Arc<Flight>, RandomState>>);

#[derive(Debug)]
struct Flight {
    permits: Semaphore,
    answer: Mutex<Option<SharedAnswer>>,
    /// The number of its members. Changed only under the lock of the map.
    members: AtomicUsize,
    /// When the leader's call was dispatched; the first one if several were.
    dispatched: Mutex<Option<Dispatched>>,
    /// The flight that must end before this one is dispatched.
    previous: Mutex<Option<Arc<Self>>>,
    /// The sessions of its members that have one.
    sessions: Mutex<SmallVec<[u64; 2]>>,
}

#[derive(Debug, Clone, Copy)]
struct Dispatched {
    at: Instant,
    /// How long after that others may join, if the leader set a limit.
    within: Option<Duration>,
}

impl Dispatched {
    /// Returns `true` if a call that accepts an answer of `within` ago may not join.
    fn is_old(&self, within: Option<Duration>, now: Instant) -> bool {
        let is_over = |within| self.at + within < now;
        within.is_some_and(is_over) || self.within.is_some_and(is_over)
    }
}

impl Flights {
    /// Joins the flight of this key; starts one if there is none, or if it was dispatched longer
    /// ago than `within`: that one goes on for its members. A session that is a member already runs
    /// its further calls alone: it means each of them.
    pub(crate) fn join(
        &self,
        key: u128,
        within: Option<Duration>,
        session: Option<u64>,
        now: Instant,
    ) -> FlightGuard<'_> {
        let is_old = |flight: &Flight| {
            let dispatched = *flight.dispatched.lock();
            dispatched.is_some_and(|dispatched| dispatched.is_old(within, now))
        };
        self.join_unless(key, session, is_old, |_| None)
    }

    /// Joins a flight of this key that is not dispatched yet; starts one if there is none. It is
    /// dispatched when the one before it has ended, or when its leader stops waiting for that.
    pub(crate) fn next(&self, key: u128, session: Option<u64>) -> FlightGuard<'_> {
        let is_dispatched = |flight: &Flight| flight.dispatched.lock().is_some();
        self.join_unless(key, session, is_dispatched, |current| Some(current.clone()))
    }

    fn join_unless(
        &self,
        key: u128,
        session: Option<u64>,
        is_over: impl FnOnce(&Flight) -> bool,
        previous: impl FnOnce(&Arc<Flight>) -> Option<Arc<Flight>>,
    ) -> FlightGuard<'_> {
        let mut flights = self.0.lock();
        let entry = flights.entry(key).or_insert_with(|| Flight::new(None));
        // a flight that answers is removed before it closes
        let is_released = entry.permits.is_closed();
        if is_released || is_over(entry) {
            let previous = previous(entry);
            *entry = Flight::new(previous);
        }
        if let Some(session) = session {
            let mut sessions = entry.sessions.lock();
            if sessions.contains(&session) {
                return self.alone(key);
            }
            sessions.push(session);
        }
        self.enter(key, entry.clone())
    }

    /// Starts a flight that no other call joins.
    pub(crate) fn alone(&self, key: u128) -> FlightGuard<'_> {
        self.enter(key, Flight::new(None))
    }

    /// Counts a member in.
    fn enter(&self, key: u128, flight: Arc<Flight>) -> FlightGuard<'_> {
        flight.members.fetch_add(1, Ordering::Relaxed);
        FlightGuard {
            flights: self,
            key,
            flight,
        }
    }
}

impl Flight {
    fn new(previous: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(1),
            answer: Mutex::default(),
            members: AtomicUsize::new(0),
            dispatched: Mutex::default(),
            previous: Mutex::new(previous),
            sessions: Mutex::default(),
        })
    }

    /// Lets all followers run, each for itself. Later calls join another flight.
    fn release(&self) {
        self.permits.close();
    }
}

/// Releases the followers of a call when its client is first asked something.
struct Releaser {
    flight: Arc<Flight>,
    next: Option<Arc<dyn ProgressSink>>,
}

impl ProgressSink for Releaser {
    fn report(&self, params: &[u8]) {
        if let Some(next) = &self.next {
            next.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        if waits {
            self.flight.release();
        }
        if let Some(next) = &self.next {
            next.waits_for_person(waits);
        }
    }
}

/// One call's membership in a flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct FlightGuard<'a> {
    flights: &'a Flights,
    key: u128,
    flight: Arc<Flight>,
}

/// The role of a call in a flight.
#[derive(Debug)]
pub(crate) enum Role<'a> {
    /// It runs. While it holds the permit, only leaders that a failure allowed run besides. It has
    /// none if it was released.
    Leader(Option<SemaphorePermit<'a>>),
    /// It takes the answer of a leader.
    Follower(SharedAnswer),
}

/// The answer that a flight shares.
#[derive(Debug, Clone)]
pub(crate) struct SharedAnswer {
    pub(crate) output: ToolOutput,
    /// How long the leader's call took.
    pub(crate) took: Duration,
}

impl FlightGuard<'_> {
    /// Waits until the call is the leader, or has its answer.
    pub(crate) async fn role(&self) -> Role<'_> {
        loop {
            if let Some(answer) = self.flight.answer.lock().clone() {
                return Role::Follower(answer);
            }
            let Ok(permit) = self.flight.permits.acquire().await else {
                // closed after the answer was set, or without one
                let answer = self.flight.answer.lock().clone();
                return answer.map_or(Role::Leader(None), Role::Follower);
            };
            // returned by a leader that answered, before another one closed the semaphore
            if self.flight.answer.lock().is_none() {
                return Role::Leader(Some(permit));
            }
        }
    }

    /// Waits until the flight before this one has ended or has no leader. The leader waits before
    /// its call is dispatched.
    pub(crate) async fn wait_for_previous(&self) {
        let previous = self.flight.previous.lock().clone();
        if let Some(previous) = previous {
            // closed once it is answered; a returned permit is for its own followers first
            let _ended = previous.permits.acquire().await;
        }
    }

    /// Notes that the call is dispatched now, and how long after that others may join. Only the
    /// first dispatch of the flight is noted.
    pub(crate) fn dispatch(&self, at: Instant, within: Option<Duration>) {
        let dispatched = Dispatched { at, within };
        self.flight.dispatched.lock().get_or_insert(dispatched);
        // or each flight would keep all flights before it
        self.flight.previous.lock().take();
    }

    /// Returns the leader's call to send: the first question to its client releases the followers.
    pub(crate) fn released_by(&self, call: ToolCall) -> ToolCall {
        if call.client.is_none() {
            return call;
        }
        let (flight, next) = (self.flight.clone(), call.progress().cloned());
        call.with_progress(Arc::new(Releaser { flight, next }))
    }

    /// Gives all followers the answer, and ends the flight. The leader stores the answer before, so
    /// that calls after the flight find it there.
    pub(crate) fn answer(&self, answer: SharedAnswer) {
        let mut first = self.flight.answer.lock();
        let is_first = first.is_none();
        first.get_or_insert(answer);
        drop(first);
        if is_first {
            self.leave_if(|| true);
            self.flight.permits.close();
        }
    }

    /// Allows one more leader at a time: each leader without an answer calls it, so that twice as
    /// many run in each round, and all calls end after a few rounds.
    pub(crate) fn allow_more_leaders(&self) {
        self.flight.permits.add_permits(1);
    }

    /// Removes the flight, unless it has ended already and another has its key.
    fn leave_if(&self, last: impl FnOnce() -> bool) {
        let mut flights = self.flights.0.lock();
        let own = flights.get(&self.key);
        if own.is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) && last() {
            flights.remove(&self.key);
        }
    }
}

impl Drop for FlightGuard<'_> {
    fn drop(&mut self) {
        self.leave_if(|| self.flight.members.fetch_sub(1, Ordering::Relaxed) == 1);
    }
}
