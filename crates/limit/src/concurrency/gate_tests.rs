//! The gate against a model, with calls that come, are polled, go and are dropped as chance has it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use proptest::prelude::*;

use super::config::Shed;
use super::gate::{Entry, Gate, Place, Waiter};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Come,
    Drop(usize),
    Leave(usize),
    Limit(usize),
    Poll(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Come),
        2 => any::<usize>().prop_map(Step::Drop),
        3 => any::<usize>().prop_map(Step::Leave),
        1 => (1_usize..6).prop_map(Step::Limit),
        2 => any::<usize>().prop_map(Step::Poll),
    ];
    prop::collection::vec(step, 0..200)
}

/// A call that has a waiter, and what it should be told.
struct Waiting {
    id: usize,
    waiter: Waiter,
    woken: Arc<Woken>,
}

/// What should be.
#[derive(Default)]
struct Model {
    limit: usize,
    in_flight: usize,
    line: VecDeque<usize>,
    served: Vec<usize>,
    shed: Vec<usize>,
}

impl Model {
    fn serve(&mut self) {
        while self.in_flight < self.limit
            && let Some(id) = self.line.pop_front()
        {
            self.in_flight += 1;
            self.served.push(id);
        }
    }
}

fn enter(gate: &Arc<Gate>, woken: &Arc<Woken>) -> Entry {
    match gate.clone().enter_at_once() {
        Ok(place) => Entry::Free(place),
        Err(gate) => gate.enter(&Waker::from(woken.clone())),
    }
}

fn poll(waiting: &mut Waiting) -> Poll<Option<Place>> {
    let waker = Waker::from(waiting.woken.clone());
    Pin::new(&mut waiting.waiter).poll(&mut Context::from_waker(&waker))
}

proptest! {
    #[test]
    fn places_and_turns_are_as_in_the_model(
        steps in steps(),
        limit in 1_usize..5,
        max_waiting in 0_usize..5,
        oldest in any::<bool>(),
    ) {
        let shed = if oldest { Shed::Oldest } else { Shed::Newest };
        let gate = Arc::new(Gate::new(limit, max_waiting, shed));
        let mut model = Model { limit, ..Model::default() };
        let (mut waiting, mut running) = (Vec::<Waiting>::new(), Vec::<Place>::new());
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Come => {
                    let woken = Arc::new(Woken::default());
                    match enter(&gate, &woken) {
                        Entry::Free(place) => {
                            prop_assert!(model.in_flight < model.limit && model.line.is_empty());
                            model.in_flight += 1;
                            running.push(place);
                        }
                        Entry::Full => {
                            prop_assert!(model.in_flight >= model.limit);
                            prop_assert!(max_waiting == 0 || !oldest);
                            prop_assert_eq!(model.line.len(), max_waiting);
                        }
                        Entry::InLine(waiter) => {
                            prop_assert!(model.in_flight >= model.limit);
                            if model.line.len() == max_waiting {
                                prop_assert!(oldest);
                                model.shed.extend(model.line.pop_front());
                            }
                            model.line.push_back(id);
                            waiting.push(Waiting { id, waiter, woken });
                        }
                    }
                }
                Step::Poll(n) if !waiting.is_empty() => {
                    let n = n % waiting.len();
                    let id = waiting[n].id;
                    match poll(&mut waiting[n]) {
                        Poll::Pending => prop_assert!(model.line.contains(&id)),
                        Poll::Ready(None) => {
                            prop_assert!(model.shed.contains(&id));
                            waiting.swap_remove(n);
                        }
                        Poll::Ready(Some(place)) => {
                            prop_assert!(model.served.contains(&id));
                            model.served.retain(|served| *served != id);
                            running.push(place);
                            waiting.swap_remove(n);
                        }
                    }
                }
                Step::Drop(n) if !waiting.is_empty() => {
                    let gone = waiting.swap_remove(n % waiting.len());
                    model.line.retain(|id| *id != gone.id);
                    if model.served.contains(&gone.id) {
                        model.served.retain(|served| *served != gone.id);
                        model.in_flight -= 1;
                    }
                    drop(gone);
                    model.serve();
                }
                Step::Leave(n) if !running.is_empty() => {
                    drop(running.swap_remove(n % running.len()));
                    model.in_flight -= 1;
                    model.serve();
                }
                Step::Limit(limit) => {
                    gate.set_limit(limit);
                    model.limit = limit;
                    model.serve();
                }
                Step::Poll(_) | Step::Drop(_) | Step::Leave(_) => {}
            }
            prop_assert_eq!(gate.in_flight(), model.in_flight);
            prop_assert_eq!(gate.waiting(), model.line.len());
            for call in &waiting {
                let called = model.served.contains(&call.id) || model.shed.contains(&call.id);
                prop_assert_eq!(call.woken.0.load(Ordering::Relaxed) > 0, called, "a wake-up");
            }
        }
        drop((waiting, running));
        prop_assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
        prop_assert!(gate.enter_at_once().is_ok());
    }
}

/// The last clone of a waker may own a call that is in the same line: dropping it drops the call.
#[test]
fn a_waker_that_owns_a_call_in_line_is_never_dropped_under_the_lock() {
    struct Owner(
        #[expect(dead_code, reason = "held for its drop")] parking_lot::Mutex<Option<Waiter>>,
    );
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    let gate = Arc::new(Gate::new(1, 10, Shed::Newest));
    let place = gate.clone().enter_at_once().unwrap();
    let Entry::InLine(owned) = gate.enter(Waker::noop()) else {
        panic!("the place is taken")
    };
    let owner = Waker::from(Arc::new(Owner(parking_lot::Mutex::new(Some(owned)))));
    let Entry::InLine(mut waiter) = gate.enter(&owner) else {
        panic!("the place is taken")
    };
    drop(owner);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut waiter).poll(&mut cx).is_pending());
    assert_eq!(gate.waiting(), 1);
    drop(place);
    assert!(Pin::new(&mut waiter).poll(&mut cx).is_ready());
}
