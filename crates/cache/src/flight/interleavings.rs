//! Flights in many orders of steps, chosen by a scheduler.
//!
//! Callers join one key at the same time. Each leader answers, fails, asks its client something or
//! is dropped; some followers stop waiting, some are dropped. Then no follower is stranded (the
//! scheduler sees a deadlock), no more calls run at once than failures and questions allow, an
//! answer is found once and taken by all, and no flight is left behind. A leader that panics drops
//! what a dropped one drops, in the same order; the panic itself is in `tests/behaviour/flight.rs`.
//! In some schedules callers join the next flight only: then each answer is of a run that began
//! after its caller arrived, and no two run at once except those that failures or dropped leaders
//! allow.
//!
//! Each of these faults, put in one at a time, fails a test here: a semaphore closed before the
//! answer is set; a permit taken although an answer is there; a member counted outside the map's
//! lock; a guard that never leaves; two permits from the start; a next flight that is joined though
//! it is dispatched, or that does not wait for the previous one.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::AtomicUsize as Count;
use std::task::Poll;

use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;

use super::*;

const KEY: u128 = 1;
const CALLERS: usize = 4;
/// How many orders each test tries: enough to find each fault above several times over.
const ORDERS: usize = 4_000;

/// How a caller behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behavior {
    Answers,
    Fails,
    /// Releases the others, then ends with an answer of its own.
    Asks,
    /// Is dropped while it runs.
    IsDropped,
    /// Waits for this many polls only.
    StopsWaiting(u8),
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Found,
    Followed,
    Answered,
    Nothing,
}

/// Which flights callers join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Joins {
    #[default]
    Any,
    /// Only those not dispatched; callers are of two sessions, so that several run at once.
    Undispatched,
    /// The next one.
    Next,
}

/// The flights, the stored answer, and the calls in flight.
#[derive(Debug, Default)]
struct Table {
    flights: Flights,
    /// Whether answers are stored; if not, a caller after a flight runs.
    keeps: bool,
    stored: Mutex<Option<ToolOutput>>,
    joins: Joins,
    running: Count,
    /// How many runs began.
    runs: Count,
    /// How many may run at once.
    failed: Count,
    /// How many released the others.
    asked: Count,
    /// How many callers have left.
    left: Count,
    answered: Count,
}

impl Table {
    /// A read, as the cache makes it: see `Read::run`.
    async fn caller(&self, behavior: Behavior) -> End {
        let now = Instant::now();
        let arrived = self.runs.load(Ordering::SeqCst);
        let flight = match self.joins {
            Joins::Any => self.flights.join(KEY, None, None, now),
            // a flight that was dispatched is too old to join
            Joins::Undispatched => {
                let later = now + Duration::from_secs(1);
                let session = Some(thread_rng().gen_range(0..2));
                self.flights.join(KEY, Some(Duration::ZERO), session, later)
            }
            Joins::Next => self.flights.next(KEY, None),
        };
        // a leader that leaves the next flight ends its wait for the previous one
        let _leaving = Leaving(self);
        if self.stored.lock().unwrap().is_some() {
            return End::Found;
        }
        let polls = match behavior {
            Behavior::StopsWaiting(polls) => polls,
            _ => u8::MAX,
        };
        let _permit = match within(polls, flight.role()).await {
            None => return End::Nothing,
            Some(Role::Follower(answer)) => {
                let run: usize = answer.output.to_text().parse().unwrap();
                let may_be_older = self.joins != Joins::Next;
                assert!(may_be_older || run >= arrived, "{run} {arrived}");
                return End::Followed;
            }
            Some(Role::Leader(permit)) => permit,
        };
        flight.wait_for_previous().await;
        self.run(behavior, &flight).await
    }

    async fn run(&self, behavior: Behavior, flight: &FlightGuard<'_>) -> End {
        flight.dispatch(Instant::now(), None);
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        let running = Running::begin(self);
        yield_now().await;
        match behavior {
            Behavior::Fails => {
                self.failed.fetch_add(1, Ordering::SeqCst);
                drop(running);
                flight.allow_more_leaders();
                End::Nothing
            }
            Behavior::Asks => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                flight.flight.release();
                yield_now().await;
                drop(running);
                flight.allow_more_leaders();
                End::Nothing
            }
            Behavior::IsDropped => End::Nothing,
            Behavior::Answers | Behavior::StopsWaiting(_) => {
                drop(running);
                let output = ToolOutput::text(run.to_string());
                if self.keeps {
                    self.stored.lock().unwrap().replace(output.clone());
                }
                flight.answer(SharedAnswer {
                    output,
                    took: Duration::ZERO,
                });
                self.answered.fetch_add(1, Ordering::SeqCst);
                End::Answered
            }
        }
    }
}

/// Counts callers that left.
struct Leaving<'a>(&'a Table);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts the calls in flight, and fails if there are too many.
struct Running<'a>(&'a Table);

impl<'a> Running<'a> {
    fn begin(table: &'a Table) -> Self {
        let others = table.running.fetch_add(1, Ordering::SeqCst);
        let left = match table.joins {
            Joins::Next => table.left.load(Ordering::SeqCst),
            Joins::Any | Joins::Undispatched => 0,
        };
        let allowed = table.failed.load(Ordering::SeqCst) + left;
        let is_released = table.asked.load(Ordering::SeqCst) > 0;
        let may_overlap = table.joins == Joins::Undispatched || is_released;
        assert!(may_overlap || others <= allowed, "{others}, {allowed}");
        Self(table)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for a number of polls only, then drops what it waits for.
async fn within<F: Future>(polls: u8, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if polls == u8::MAX => Poll::Pending,
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// Lets callers of these behaviors meet; drops the first while it waits or runs, if asked to.
fn play(behaviors: &[Behavior], keeps: bool, drop_first: bool, joins: Joins) {
    let table = Arc::new(Table {
        keeps,
        joins,
        ..Table::default()
    });
    let callers: Vec<_> = behaviors
        .iter()
        .map(|behavior| {
            let (table, behavior) = (table.clone(), *behavior);
            spawn(async move { table.caller(behavior).await })
        })
        .collect();
    if drop_first && let Some(first) = callers.first() {
        first.abort();
    }
    for (caller, behavior) in callers.into_iter().zip(behaviors) {
        let end = block_on(caller).unwrap_or(End::Nothing);
        let sound = *behavior == Behavior::Answers && !drop_first;
        assert!(!sound || end != End::Nothing, "{behaviors:?}");
    }
    let counts = [&table.answered, &table.failed, &table.asked];
    let [answered, failed, asked] = counts.map(|count| count.load(Ordering::SeqCst));
    let may_repeat = !keeps || asked > 0 || joins != Joins::Any;
    assert!(may_repeat || answered <= 1 + failed, "{answered}, {failed}");
    let is_left = !table.flights.0.lock().is_empty();
    assert!(!is_left, "a flight is left: {behaviors:?}");
}

fn any_behavior() -> Behavior {
    let mut rng = thread_rng();
    match rng.gen_range(0..9) {
        0 => Behavior::Fails,
        1 | 2 => Behavior::IsDropped,
        5 => Behavior::Asks,
        3 | 4 => Behavior::StopsWaiting(rng.gen_range(0..3)),
        _ => Behavior::Answers,
    }
}

fn any_schedule() {
    let behaviors: Vec<Behavior> = (0..CALLERS).map(|_| any_behavior()).collect();
    let mut rng = thread_rng();
    let (keeps, drop_first) = (rng.gen_bool(0.7), rng.gen_bool(0.3));
    let joins = [Joins::Any, Joins::Undispatched, Joins::Next];
    play(&behaviors, keeps, drop_first, joins[rng.gen_range(0..3)]);
}

#[test]
fn no_follower_is_stranded_in_random_orders() {
    shuttle::check_random(any_schedule, ORDERS);
}

#[test]
fn no_follower_is_stranded_in_orders_with_few_changes() {
    shuttle::check_pct(any_schedule, ORDERS, 3);
}
