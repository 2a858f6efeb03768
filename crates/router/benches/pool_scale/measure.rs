//! The fastest of many short rounds, on one thread or on two at once.

use std::hint::{black_box, spin_loop};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;

use callward_core::ToolCall;
use tokio::time::Instant;
use tower::Service;

/// Does something with each of these calls.
pub(crate) type Work = Box<dyn FnMut(&[ToolCall]) + Send>;

/// Calls of a round: so few that most rounds are not interrupted, so many that reading the clock does
/// not show.
const CALLS: usize = 500;
/// Calls before the first round.
const WARM: usize = 2 * CALLS;
/// Looks at the other thread, some nanoseconds each, before a processor is left to others.
const SPINS: u32 = 1_000;

/// How often, and with which calls.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) rounds: usize,
    pub(crate) calls: &'a [ToolCall],
}

impl Plan<'_> {
    /// Returns the nanoseconds of one call in the fastest round: what else the machine does can only
    /// add. Of two threads, which begin each round together, the slower one counts.
    pub(crate) fn nanos(&self, mut works: Vec<Work>) -> f64 {
        for work in &mut works {
            // everybody has what it needs; of many tools, the first ones are enough for that
            work(&self.calls[..self.calls.len().min(WARM)]);
        }
        let (threads, turn) = (works.len(), AtomicUsize::new(0));
        let rounds = thread::scope(|scope| {
            let threads: Vec<_> = works
                .into_iter()
                .enumerate()
                .map(|(place, work)| {
                    let turn = &turn;
                    scope.spawn(move || self.run(work, place, threads, turn))
                })
                .collect();
            let run = threads.into_iter().map(|thread| thread.join());
            run.map(|rounds| rounds.expect("no panic"))
                .reduce(|one, other| one.into_iter().zip(other).map(slower).collect())
        });
        let rounds = rounds.unwrap_or_default();
        rounds.into_iter().fold(f64::INFINITY, f64::min)
    }

    fn run(&self, mut work: Work, place: usize, threads: usize, turn: &AtomicUsize) -> Vec<f64> {
        let part = CALLS.min(self.calls.len());
        let parts = self.calls.len() / part;
        let round = |number: usize| {
            // threads are in different parts of the calls, if there are many
            let from = (number + place * parts / threads) % parts * part;
            let calls = &self.calls[from..from + part];
            turn.fetch_add(1, Ordering::AcqRel);
            let mut spins = 0_u32;
            while turn.load(Ordering::Acquire) < threads * (number + 1) {
                spins += 1;
                // whoever is waited for may need this very processor
                match spins % SPINS {
                    0 => thread::yield_now(),
                    _ => spin_loop(),
                }
            }
            let start = Instant::now();
            let mut done = 0;
            while done < CALLS {
                work(calls);
                done += part;
            }
            start.elapsed().as_nanos() as f64 / done as f64
        };
        (0..self.rounds).map(round).collect()
    }
}

fn slower((one, other): (f64, f64)) -> f64 {
    one.max(other)
}

/// Gives a service a copy of each call. Each answers at once.
pub(crate) fn routed<S>(service: S) -> Work
where
    S: Service<ToolCall, Future: Send> + Send + 'static,
{
    let mut service = service;
    Box::new(move |calls| {
        let mut cx = Context::from_waker(Waker::noop());
        for call in calls {
            assert!(service.poll_ready(&mut cx).is_ready(), "not ready");
            let answer = pin!(service.call(call.clone())).poll(&mut cx);
            assert!(black_box(answer).is_ready(), "not answered at once");
        }
    })
}
