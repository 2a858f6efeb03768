//! Single flight: identical reads that run at the same time run once.
//!
//! A flight is a semaphore with one place. Whoever holds the place runs the call; the others wait
//! for the place. A runner that answers closes the semaphore, and everybody who waits takes the
//! answer. A runner that panics or is dropped gives the place back, and exactly one of those who
//! wait, the one who waited longest, gets it. A runner that fails gives back two: a server that
//! answers nobody must not make everybody wait for all who came before. Nobody can be stranded, because the place is
//! given back by dropping it; and who stops waiting leaves the queue by dropping his wait.
//!
//! While what is read is being written, a call may only get the answer of a run that began after it
//! arrived. It joins the [next](Flights::next) flight: one that is not dispatched yet, and that is not
//! dispatched before the one that runs has ended.

use std::sync::Arc;
use std::time::Duration;

use callward_core::ToolOutput;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::sync::{AtomicUsize, DashMap, OnceLock, Ordering, Semaphore, SemaphorePermit};

#[cfg(all(test, shuttle))]
mod interleavings;

/// All flights of one cache, by key. The key holds the epoch, so that a read that begins after a
/// write never joins one that began before it.
#[derive(Debug, Default)]
pub(crate) struct Flights(DashMap<u128, Arc<Flight>>);

#[derive(Debug)]
struct Flight {
    place: Semaphore,
    answer: OnceLock<Answer>,
    /// How many take part. Changed only under the map's lock of this key.
    seats: AtomicUsize,
    /// When the call was dispatched that runs, the first one if several did.
    dispatched: OnceLock<Dispatched>,
    /// The flight that is to end before this one is dispatched.
    before: Mutex<Option<Arc<Self>>>,
    /// The sessions that take part; of calls without one, nothing is noted.
    sessions: Mutex<SmallVec<[u64; 2]>>,
}

#[derive(Debug)]
struct Dispatched {
    at: Instant,
    /// How long after that others may join, if whoever runs knows of a limit.
    within: Option<Duration>,
}

impl Dispatched {
    /// Says whether a call may not join that accepts an answer of `within` ago.
    fn is_old(&self, within: Option<Duration>, now: Instant) -> bool {
        let is_over = |within| self.at + within < now;
        within.is_some_and(is_over) || self.within.is_some_and(is_over)
    }
}

impl Flights {
    /// Takes part in the flight of this key, starting one if there is none; or if the one there is was
    /// dispatched longer ago than `within`: it goes on for those who take part in it already. A session
    /// that takes part in it runs its further calls alone: it means each of them.
    pub(crate) fn join(
        &self,
        key: u128,
        within: Option<Duration>,
        session: Option<u64>,
        now: Instant,
    ) -> Seat<'_> {
        let is_old = |flight: &Flight| {
            let dispatched = flight.dispatched.get();
            dispatched.is_some_and(|dispatched| dispatched.is_old(within, now))
        };
        self.join_unless(key, session, is_old, |_| None)
    }

    /// Takes part in a flight of this key that is not dispatched yet, starting one if there is none. It
    /// is dispatched when the one before it has ended, or when nobody waits for that any longer.
    pub(crate) fn next(&self, key: u128, session: Option<u64>) -> Seat<'_> {
        let is_dispatched = |flight: &Flight| flight.dispatched.get().is_some();
        self.join_unless(key, session, is_dispatched, |before| Some(before.clone()))
    }

    fn join_unless(
        &self,
        key: u128,
        session: Option<u64>,
        is_over: impl FnOnce(&Flight) -> bool,
        before: impl FnOnce(&Arc<Flight>) -> Option<Arc<Flight>>,
    ) -> Seat<'_> {
        let mut entry = self.0.entry(key).or_insert_with(|| Flight::new(None));
        if is_over(&entry) {
            let before = before(&entry);
            *entry = Flight::new(before);
        }
        if let Some(session) = session {
            let mut sessions = entry.sessions.lock();
            if sessions.contains(&session) {
                drop(sessions);
                drop(entry);
                return self.alone(key);
            }
            sessions.push(session);
        }
        entry.seats.fetch_add(1, Ordering::Relaxed);
        Seat {
            flights: self,
            key,
            flight: entry.clone(),
        }
    }

    /// Starts a flight that no other call takes part in.
    pub(crate) fn alone(&self, key: u128) -> Seat<'_> {
        let flight = Flight::new(None);
        flight.seats.fetch_add(1, Ordering::Relaxed);
        Seat {
            flights: self,
            key,
            flight,
        }
    }
}

impl Flight {
    fn new(before: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            place: Semaphore::new(1),
            answer: OnceLock::new(),
            seats: AtomicUsize::new(0),
            dispatched: OnceLock::new(),
            before: Mutex::new(before),
            sessions: Mutex::default(),
        })
    }
}

/// One call's part in a flight; given up by dropping it.
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    flights: &'a Flights,
    key: u128,
    flight: Arc<Flight>,
}

/// What a call in a flight is to do.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// Run: as long as the permit is held, nobody else does but those that a failure let go ahead.
    Run(SemaphorePermit<'a>),
    /// Take this answer: somebody else ran.
    Take(Answer),
}

/// What a flight brings back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) output: ToolOutput,
    /// How long the call took that ran.
    pub(crate) took: Duration,
}

impl Seat<'_> {
    /// Waits until the call is to run, or has its answer.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        loop {
            if let Some(answer) = self.flight.answer.get() {
                return Turn::Take(answer.clone());
            }
            // closed only after the answer is set, so that the next round returns
            let Ok(permit) = self.flight.place.acquire().await else {
                continue;
            };
            // given back by one who answered, before another who did could close it
            if self.flight.answer.get().is_none() {
                return Turn::Run(permit);
            }
        }
    }

    /// Waits until the flight before this one has ended, or nobody is left in it who runs. Whoever has
    /// the turn waits before the call is dispatched.
    pub(crate) async fn wait_for_the_one_before(&self) {
        let before = self.flight.before.lock().clone();
        if let Some(before) = before {
            // closed once it is answered; a place that is given back is for those who wait there first
            let _ended = before.place.acquire().await;
        }
    }

    /// Notes that the call is dispatched now, and how long after that others may join. A later attempt of
    /// the flight is not noted.
    pub(crate) fn dispatch(&self, at: Instant, within: Option<Duration>) {
        let _ = self.flight.dispatched.set(Dispatched { at, within });
        // or each flight would keep all that were before it
        self.flight.before.lock().take();
    }

    /// Gives everybody who waits the answer, and ends the flight. Whoever runs stores the answer
    /// before, so that who comes after the flight finds it there.
    pub(crate) fn answer(&self, answer: Answer) {
        if self.flight.answer.set(answer).is_ok() {
            self.leave_if(|| true);
            self.flight.place.close();
        }
    }

    /// Lets one more run at a time from now on: called by each runner that has nothing to share, so
    /// twice as many try in each round, and a crowd is through after a few.
    pub(crate) fn widen(&self) {
        self.flight.place.add_permits(1);
    }

    /// Ends the flight, unless it has ended already and another runs under its key.
    fn leave_if(&self, last: impl FnOnce() -> bool) {
        self.flights.0.remove_if(&self.key, |_, flight| {
            Arc::ptr_eq(flight, &self.flight) && last()
        });
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.leave_if(|| self.flight.seats.fetch_sub(1, Ordering::Relaxed) == 1);
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn answer(text: &str) -> Answer {
        Answer {
            output: ToolOutput::text(text),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn one_runs_and_all_take_its_answer() {
        let flights = Flights::default();
        let (first, second) = (
            flights.join(1, None, None, Instant::now()),
            flights.join(1, None, None, Instant::now()),
        );
        let Poll::Ready(Turn::Run(_permit)) = poll(pin!(first.turn())) else {
            panic!("the first runs")
        };
        let mut waiting = pin!(second.turn());
        assert!(poll(waiting.as_mut()).is_pending());
        let late = flights.join(1, None, None, Instant::now());
        first.answer(answer("a"));
        assert!(flights.0.is_empty());
        for turn in [poll(waiting), poll(pin!(late.turn()))] {
            let Poll::Ready(Turn::Take(answer)) = turn else {
                panic!("it takes the answer")
            };
            assert_eq!(answer.output.to_text(), "a");
        }
    }

    #[test]
    fn a_runner_that_leaves_hands_over_to_one() {
        let flights = Flights::default();
        let (first, second, third) = (
            flights.join(1, None, None, Instant::now()),
            flights.join(1, None, None, Instant::now()),
            flights.join(1, None, None, Instant::now()),
        );
        let Poll::Ready(Turn::Run(permit)) = poll(pin!(first.turn())) else {
            panic!("the first runs")
        };
        let (mut two, mut three) = (pin!(second.turn()), pin!(third.turn()));
        assert!(poll(two.as_mut()).is_pending());
        assert!(poll(three.as_mut()).is_pending());
        drop(permit);
        drop(first);
        let Poll::Ready(Turn::Run(_permit)) = poll(two) else {
            panic!("the second runs")
        };
        assert!(poll(three).is_pending());
    }

    #[test]
    fn whoever_leaves_last_takes_the_flight_along() {
        let flights = Flights::default();
        let (first, second) = (
            flights.join(1, None, None, Instant::now()),
            flights.join(1, None, None, Instant::now()),
        );
        drop(second);
        assert_eq!(flights.0.len(), 1);
        drop(first);
        assert!(flights.0.is_empty());
    }

    #[test]
    fn a_seat_of_an_ended_flight_does_not_end_the_next_one() {
        let flights = Flights::default();
        let ended = flights.join(1, None, None, Instant::now());
        ended.answer(answer("a"));
        let next = flights.join(1, None, None, Instant::now());
        drop(ended);
        assert_eq!(flights.0.len(), 1);
        drop(next);
        assert!(flights.0.is_empty());
    }
}
