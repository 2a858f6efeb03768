//! One circuit in many orders of steps, chosen by a scheduler.
//!
//! Callers ask, and succeed, fail, go away, or never come back; the lock hands over to the
//! scheduler at each step. The open time is over at once and a probe has an hour, so that no order
//! depends on the clock. Then each rule is checked from outside: half-open admits exactly its
//! probes, each dropped probe gives back one place and no more, and a late outcome changes nothing.
//!
//! Each of these faults, put in one at a time, fails a test here: a place given back twice; a
//! ticket not compared with the generation.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex as Shared;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;

use crate::streak::Fault;
use crate::{BreakerConfig, BreakerState, Circuit, Permit};

/// A lock whose next holder the scheduler chooses. A panic does not poison it.
#[derive(Debug)]
pub(crate) struct Mutex<T>(Shared<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Shared::new(value))
    }

    pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// How many orders each test tries: enough to find each fault above several times over.
const ORDERS: usize = 5_000;

/// A connection of one tool was lost.
const LOST: Fault = Fault {
    tool: Some(1),
    is_retry: false,
};

fn circuit(failures: u32, probes: u32) -> Arc<Circuit> {
    let mut config = BreakerConfig::default();
    (config.failures, config.probes) = (failures, probes);
    config.open_time = Duration::from_nanos(1);
    Circuit::alone(config)
}

fn trip(circuit: &Arc<Circuit>) {
    while circuit.state() == BreakerState::Closed {
        circuit.admit().unwrap().fail(&"down");
    }
}

/// Runs this many threads together, by their numbers, and waits for all.
fn together(threads: u32, run: impl Fn(u32) + Send + Sync + 'static) {
    let run = Arc::new(run);
    let spawn = |n| {
        let run = run.clone();
        thread::spawn(move || run(n))
    };
    let threads: Vec<_> = (0..threads).map(spawn).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Fails with one of these permits in each thread.
fn fail_together(permits: Vec<Permit>) {
    let threads = permits.len().try_into().unwrap();
    let permits = Shared::new(permits);
    together(threads, move |_| {
        let permit = permits.lock().unwrap().pop().unwrap();
        permit.fail(&"lost");
    });
}

/// Of all that ask at once, just the probes get through, and it stays so until one settles.
#[test]
fn half_open_admits_exactly_its_probes() {
    check(|| {
        let probes = thread_rng().gen_range(1..=3);
        let circuit = circuit(1, probes);
        trip(&circuit);
        let admitted = Arc::new(Shared::new(Vec::new()));
        let (asked, kept) = (circuit.clone(), admitted.clone());
        together(5, move |_| {
            // kept: a permit that is dropped gives its place back
            if let Ok(permit) = asked.admit() {
                kept.lock().unwrap().push(permit);
            }
        });
        assert_eq!(admitted.lock().unwrap().len(), probes as usize);
        assert!(!circuit.is_available(), "no place is left");
    });
}

/// A call that is dropped frees its place for exactly one other call.
#[test]
fn a_dropped_probe_gives_its_place_back_once() {
    check(|| {
        let probes = 2;
        let circuit = circuit(1, probes);
        trip(&circuit);
        let (asked, inside) = (circuit.clone(), AtomicU32::new(0));
        together(5, move |_| {
            if let Ok(permit) = asked.admit() {
                let others = inside.fetch_add(1, Ordering::SeqCst);
                assert!(others < probes, "{} probes at once", others + 1);
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
            }
        });
        // all places are back, and no more than there were
        let again: Vec<_> = (0..4).filter_map(|_| circuit.admit().ok()).collect();
        assert_eq!(again.len(), probes as usize);
    });
}

/// A call admitted while the breaker was closed takes no probe's place and returns none.
#[test]
fn a_call_admitted_while_closed_is_no_probe() {
    check(|| {
        let (circuit, inside) = (circuit(1, 1), AtomicU32::new(0));
        together(4, move |n| match n {
            0 => {
                if let Ok(permit) = circuit.admit() {
                    permit.fail(&"down");
                }
            }
            1 => drop(circuit.admit_call(true, false)),
            _ => {
                // no call succeeds, so the breaker does not close again: these are probes
                while circuit.state() == BreakerState::Closed {
                    thread::yield_now();
                }
                if let Ok(permit) = circuit.admit() {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two probes");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                }
            }
        });
    });
}

/// A call admitted before a reset does not count after it, whenever it ends.
#[test]
fn a_late_outcome_changes_nothing() {
    check(|| {
        let circuit = circuit(2, 1);
        let old: Vec<Permit> = (0..3).map(|_| circuit.admit().unwrap()).collect();
        let mut old = old.into_iter();
        let (other, early) = (circuit.clone(), Shared::new(old.next()));
        together(2, move |n| match n {
            0 => {
                other.change("new", |state, _| state.close());
                // two are needed to open it, and only this one is of the new generation
                other.admit().unwrap().fail(&"down");
            }
            // it comes any time: before the reset it is forgotten, after it it is late
            _ => early.lock().unwrap().take().unwrap().fail(&"lost"),
        });
        assert_eq!(circuit.state(), BreakerState::Closed);
        for late in old {
            late.fail(&"lost");
        }
        assert_eq!(circuit.state(), BreakerState::Closed);
        circuit.admit().unwrap().fail(&"down");
        assert_eq!(circuit.state(), BreakerState::Open);
    });
}

/// Calls that are in flight together fail once, and no event is lost: as many as it takes open it.
#[test]
fn concurrent_failures_of_one_event_count_once() {
    check(|| {
        let circuit = circuit(3, 1);
        for known in 0..3 {
            assert_eq!(circuit.state(), BreakerState::Closed);
            assert_eq!(circuit.status().failures, known);
            fail_together((0..3).map(|_| circuit.admit().unwrap()).collect());
        }
        assert_eq!(circuit.state(), BreakerState::Open);
    });
}

/// One tool that loses its connections, from however many threads, neither opens the breaker of its
/// server nor keeps it half open: its probes are given back, and the first answer closes it.
#[test]
fn one_tool_that_loses_connections_keeps_no_place() {
    check(|| {
        let circuit = circuit(2, 2);
        if thread_rng().gen_range(0..2) == 0 {
            trip(&circuit);
        }
        let lost = circuit.clone();
        together(4, move |_| {
            for _ in 0..2 {
                // half open, others may have all places
                if let Ok(mut permit) = lost.admit() {
                    permit.fault = LOST;
                    permit.fail(&"lost");
                }
            }
        });
        let places: Vec<_> = (0..2).filter_map(|_| circuit.admit().ok()).collect();
        assert_eq!(places.len(), 2, "each place is back");
        for permit in places {
            permit.succeed();
        }
        assert_eq!(circuit.state(), BreakerState::Closed);
    });
}

/// Whatever happened, once no call is in flight the next one is admitted.
#[test]
fn after_any_order_the_next_call_is_admitted() {
    check(|| {
        let circuit = circuit(2, 1);
        let any = circuit.clone();
        together(3, move |_| {
            for _ in 0..3 {
                match (thread_rng().gen_range(0..8), any.admit()) {
                    (0, _) => any.change("new", |state, _| state.close()),
                    (1, _) => any.change("held", |state, _| state.force(Some(false))),
                    (2, _) => any.change("released", |state, _| state.force(None)),
                    (3, permit) => drop(permit),
                    (4, Ok(permit)) => permit.succeed(),
                    (5, Ok(mut permit)) => {
                        permit.fault = LOST;
                        permit.fail(&"lost");
                    }
                    (_, Ok(permit)) => permit.fail(&"down"),
                    (_, Err(_)) => {}
                }
            }
        });
        // no call is in flight: in any state, the next call is admitted
        assert!(circuit.admit().is_ok());
    });
}

/// Tries a test in many orders of steps.
fn check(test: fn()) {
    shuttle::check_random(test, ORDERS);
    shuttle::check_pct(test, ORDERS, 3);
}
