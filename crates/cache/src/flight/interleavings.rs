//! Flights in many orders of steps, chosen by a scheduler.
//!
//! Guests join one key at the same time. Each that runs answers, fails or goes away; some that wait
//! lose their patience, some are dropped. Then nobody who waits is stranded (the scheduler sees
//! that nobody can go on), no more run at once than failures allow, an answer is found once and
//! taken by all, and no flight is left behind. A runner that panics drops what one drops that goes
//! away, in the same order; that it is a panic is in `tests/behaviour/flight.rs`. In some meetings
//! guests join the next flight only: then each answer is of a run that began after its guest arrived,
//! and no two run at once but those that failures allow, or guests who left.
//!
//! Each of these faults, put in one at a time, fails a test here: a semaphore closed before the
//! answer is set; a place taken although an answer is there; a seat counted or given up outside the
//! map's lock; a seat that never leaves; two places from the start; a next flight that is joined
//! though it is dispatched, or that does not wait for the one before it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::AtomicUsize as Count;
use std::task::Poll;

use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;

use super::*;

const KEY: u128 = 1;
const GUESTS: usize = 4;
/// How many orders each test tries: enough to find each fault above several times over.
const ORDERS: usize = 4_000;

/// How a guest behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    Fails,
    /// Goes away while it runs.
    GoesAway,
    /// Waits for so many polls only.
    Impatient(u8),
}

/// What a guest came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Found,
    Took,
    Answered,
    Nothing,
}

/// Which flights guests join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Joins {
    #[default]
    Any,
    /// None that was dispatched; guests are of two sessions, so that several run at once.
    Undispatched,
    /// The next one.
    Next,
}

/// The flights, what is stored, and who runs.
#[derive(Debug, Default)]
struct Table {
    flights: Flights,
    /// Whether answers are stored; if not, who comes after a flight makes one of his own.
    keeps: bool,
    stored: Mutex<Option<ToolOutput>>,
    joins: Joins,
    running: Count,
    /// How many runs began.
    runs: Count,
    /// How many may run at once.
    failed: Count,
    /// How many guests have left.
    left: Count,
    answered: Count,
}

impl Table {
    /// A read, as the cache makes it: see `Read::run`.
    async fn guest(&self, manner: Manner) -> End {
        let now = Instant::now();
        let arrived = self.runs.load(Ordering::SeqCst);
        let seat = match self.joins {
            Joins::Any => self.flights.join(KEY, None, None, now),
            // a flight that was dispatched is too old to join
            Joins::Undispatched => {
                let later = now + Duration::from_secs(1);
                let session = Some(thread_rng().gen_range(0..2));
                self.flights.join(KEY, Some(Duration::ZERO), session, later)
            }
            Joins::Next => self.flights.next(KEY, None),
        };
        // who leaves the next flight takes along that it waits for the one that runs
        let _leaving = Leaving(self);
        if self.stored.lock().unwrap().is_some() {
            return End::Found;
        }
        let patience = match manner {
            Manner::Impatient(polls) => polls,
            _ => u8::MAX,
        };
        let _permit = match within(patience, seat.turn()).await {
            None => return End::Nothing,
            Some(Turn::Take(answer)) => {
                let run: usize = answer.output.to_text().parse().unwrap();
                assert!(
                    self.joins != Joins::Next || run >= arrived,
                    "{run} {arrived}"
                );
                return End::Took;
            }
            Some(Turn::Run(permit)) => permit,
        };
        seat.wait_for_the_one_before().await;
        self.run(manner, &seat).await
    }

    async fn run(&self, manner: Manner, seat: &Seat<'_>) -> End {
        seat.dispatch(Instant::now(), None);
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        let running = Running::begin(self);
        yield_now().await;
        match manner {
            Manner::Fails => {
                self.failed.fetch_add(1, Ordering::SeqCst);
                drop(running);
                seat.widen();
                End::Nothing
            }
            Manner::GoesAway => End::Nothing,
            Manner::Answers | Manner::Impatient(_) => {
                drop(running);
                let output = ToolOutput::text(run.to_string());
                if self.keeps {
                    self.stored.lock().unwrap().replace(output.clone());
                }
                seat.answer(Answer {
                    output,
                    took: Duration::ZERO,
                });
                self.answered.fetch_add(1, Ordering::SeqCst);
                End::Answered
            }
        }
    }
}

/// Counts who leaves.
struct Leaving<'a>(&'a Table);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts who runs, and says if too many do.
struct Running<'a>(&'a Table);

impl<'a> Running<'a> {
    fn begin(table: &'a Table) -> Self {
        let others = table.running.fetch_add(1, Ordering::SeqCst);
        let left = match table.joins {
            Joins::Next => table.left.load(Ordering::SeqCst),
            Joins::Any | Joins::Undispatched => 0,
        };
        let allowed = table.failed.load(Ordering::SeqCst) + left;
        assert!(
            table.joins == Joins::Undispatched || others <= allowed,
            "{others} ran, {allowed} failed"
        );
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

/// Lets guests of these manners meet; drops the first while it waits or runs, if told so.
fn meet(manners: &[Manner], keeps: bool, drop_first: bool, joins: Joins) {
    let table = Arc::new(Table {
        keeps,
        joins,
        ..Table::default()
    });
    let guests: Vec<_> = manners
        .iter()
        .map(|manner| {
            let (table, manner) = (table.clone(), *manner);
            spawn(async move { table.guest(manner).await })
        })
        .collect();
    if drop_first && let Some(first) = guests.first() {
        first.abort();
    }
    for (guest, manner) in guests.into_iter().zip(manners) {
        let end = block_on(guest).unwrap_or(End::Nothing);
        let sound = *manner == Manner::Answers && !drop_first;
        assert!(!sound || end != End::Nothing, "{manners:?}");
    }
    let (answered, failed) = (
        table.answered.load(Ordering::SeqCst),
        table.failed.load(Ordering::SeqCst),
    );
    assert!(
        !keeps || joins != Joins::Any || answered <= 1 + failed,
        "{answered} answered, {failed} failed"
    );
    assert!(table.flights.0.is_empty(), "a flight is left: {manners:?}");
}

fn any_manner() -> Manner {
    let mut rng = thread_rng();
    match rng.gen_range(0..8) {
        0 => Manner::Fails,
        1 | 2 => Manner::GoesAway,
        3 | 4 => Manner::Impatient(rng.gen_range(0..3)),
        _ => Manner::Answers,
    }
}

fn any_meeting() {
    let manners: Vec<Manner> = (0..GUESTS).map(|_| any_manner()).collect();
    let mut rng = thread_rng();
    let (keeps, drop_first) = (rng.gen_bool(0.7), rng.gen_bool(0.3));
    let joins = [Joins::Any, Joins::Undispatched, Joins::Next];
    meet(&manners, keeps, drop_first, joins[rng.gen_range(0..3)]);
}

#[test]
fn nobody_is_stranded_in_random_orders() {
    shuttle::check_random(any_meeting, ORDERS);
}

#[test]
fn nobody_is_stranded_in_orders_with_few_changes() {
    shuttle::check_pct(any_meeting, ORDERS, 3);
}
