//! The gate in many orders of steps, chosen by a scheduler.
//!
//! Calls come, run and leave; some give up while they wait, some between being given a place and
//! knowing it; the limit moves meanwhile. Then never more run than the highest limit allows, and
//! everybody comes to an end: a lost wake-up would be a deadlock, which the scheduler reports.
//!
//! Each of these faults, put in one at a time, fails a test here: the bit not set before the line is
//! joined; the bit not looked at on leaving; a place not handed on by who is dropped with it; and, in
//! the last test only, a limit that is raised and lets nobody in. Not seen is who gives up in line and
//! leaves the bit set though nobody waits any more: the next one to leave takes it away.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::sync::Arc;

use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicUsize, Ordering};

use super::config::Shed;
use super::gate::{Entry, Gate, Place};

const ORDERS: usize = 2_000;

/// Comes, and waits as long as it is patient: `None` if refused, or if it gave up.
async fn enter(gate: &Arc<Gate>, patient: bool) -> Option<Place> {
    let gate = match gate.clone().enter_at_once() {
        Ok(place) => return Some(place),
        Err(gate) => gate,
    };
    let entry = std::future::poll_fn(|cx| std::task::Poll::Ready(gate.enter(cx.waker()))).await;
    match entry {
        Entry::Free(place) => Some(place),
        Entry::Full => None,
        Entry::InLine(waiter) if patient => waiter.await,
        Entry::InLine(waiter) => {
            yield_now().await;
            drop(waiter);
            None
        }
    }
}

fn calls(limit: usize, max_waiting: usize, shed: Shed, moves: bool) {
    shuttle::check_random(
        move || {
            block_on(async move {
                let gate = Arc::new(Gate::new(limit, max_waiting, shed));
                let running = Arc::new(AtomicUsize::new(0));
                let most = if moves { limit + 1 } else { limit };
                let mut tasks = Vec::new();
                for _ in 0..4 {
                    let (gate, running) = (gate.clone(), running.clone());
                    let patient = thread_rng().gen_bool(0.7);
                    tasks.push(spawn(async move {
                        let Some(place) = enter(&gate, patient).await else {
                            return;
                        };
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        assert!(now <= most, "{now} run at once");
                        yield_now().await;
                        running.fetch_sub(1, Ordering::SeqCst);
                        drop(place);
                    }));
                }
                if moves {
                    let gate = gate.clone();
                    tasks.push(spawn(async move {
                        gate.set_limit(limit + 1);
                        yield_now().await;
                        gate.set_limit(limit);
                    }));
                }
                for task in tasks {
                    task.await.unwrap();
                }
                assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
                assert!(
                    gate.enter_at_once().is_ok(),
                    "nobody waits, and nobody may come"
                );
            });
        },
        ORDERS,
    );
}

#[test]
fn with_one_place() {
    calls(1, 10, Shed::Newest, false);
}

#[test]
fn with_two_places_and_a_short_line() {
    calls(2, 1, Shed::Newest, false);
}

#[test]
fn with_a_line_that_sheds_the_oldest() {
    calls(1, 1, Shed::Oldest, false);
}

#[test]
fn with_a_limit_that_moves() {
    calls(1, 10, Shed::Newest, true);
}

/// Who has the only place leaves only when somebody else has come in.
#[test]
fn a_raised_limit_lets_in_who_waits() {
    shuttle::check_random(
        || {
            block_on(async {
                let gate = Arc::new(Gate::new(1, 10, Shed::Newest));
                let first = enter(&gate, true).await.unwrap();
                let second = spawn({
                    let gate = gate.clone();
                    async move { enter(&gate, true).await.is_some() }
                });
                gate.set_limit(2);
                assert!(second.await.unwrap());
                drop(first);
                assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
            });
        },
        ORDERS,
    );
}
