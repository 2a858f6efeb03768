//! The course of one call at a server, shared by all transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::{Chaos, Fault, Ledger};

/// Draws the faults of a server and counts its executions. Clones share them.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    chaos: Chaos,
    ledger: Ledger,
    calls: AtomicU64,
    exchanges: AtomicU64,
    /// The number of things that are still to happen.
    pending: watch::Sender<u64>,
}

/// A call that arrived, and its fault.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Turn {
    /// The identity of the call.
    pub call: u64,
    /// The fault, if any.
    pub fault: Option<Fault>,
    /// The time until the call is executed, and from then until it is answered.
    pub pause: Duration,
}

/// Marks a call without an identity: it is unlike any other.
const ANONYMOUS: u64 = 1 << 63;

impl Engine {
    /// Creates the engine of one server.
    #[must_use]
    pub fn new(chaos: Chaos, ledger: Ledger) -> Self {
        Self(Arc::new(Inner {
            chaos,
            ledger,
            calls: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
            pending: watch::Sender::new(0),
        }))
    }

    /// Counts an attempt to send a call, and draws its fault.
    #[must_use]
    pub fn turn(&self, call: Option<u64>) -> Turn {
        let nth = self.0.calls.fetch_add(1, Ordering::Relaxed);
        let call = call.unwrap_or(ANONYMOUS | nth);
        let tried = self.0.ledger.try_send(call);
        let fault = self.0.chaos.meets(nth, call, tried);
        let pause = match fault {
            None => self.0.chaos.pause(call, tried),
            Some(Fault::Slow { by }) => by,
            Some(_) => Duration::ZERO,
        };
        Turn { call, fault, pause }
    }

    /// Draws the fault of an exchange before its call is known: [`Fault::Refuse`] or
    /// [`Fault::LoseRequest`]. `life` separates the draws of restarted servers.
    #[must_use]
    pub fn before(&self, life: u64) -> Option<Fault> {
        let nth = self.0.exchanges.fetch_add(1, Ordering::Relaxed);
        self.0.chaos.before((life << 32) + nth)
    }

    /// Counts that the server received a call, in whole or in part.
    pub fn see(&self, call: u64) {
        self.0.ledger.see(call);
    }

    /// Counts an execution.
    pub fn execute(&self, call: u64) {
        self.0.ledger.execute(call);
    }

    /// Executes the call of a turn if its fault lets it run, with the pauses before and after.
    pub async fn run(&self, turn: &Turn) {
        sleep(turn.pause).await;
        if turn.fault.is_none_or(|fault| fault.runs()) {
            self.execute(turn.call);
        }
        sleep(turn.pause).await;
    }

    /// Executes a call later, independently of its caller.
    pub fn execute_later(&self, call: u64, after: Duration) {
        let engine = self.clone();
        self.later(after, move || engine.execute(call));
    }

    /// Runs `act` later, in a task of its own.
    pub(crate) fn later(&self, after: Duration, act: impl FnOnce() + Send + 'static) {
        let running = self.begin();
        tokio::spawn(async move {
            sleep(after).await;
            act();
            drop(running);
        });
    }

    /// Counts something that happens until the guard is dropped.
    #[must_use]
    pub fn begin(&self) -> Running {
        self.0.pending.send_modify(|count| *count += 1);
        Running(self.clone())
    }

    /// Waits until nothing is left to happen.
    pub async fn settled(&self) {
        let mut pending = self.0.pending.subscribe();
        // the sender lives, so the wait ends only at zero
        let _ = pending.wait_for(|count| *count == 0).await;
    }
}

/// Something that happens; see [`Engine::begin`].
#[derive(Debug)]
pub struct Running(Engine);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.pending.send_modify(|count| *count -= 1);
    }
}
