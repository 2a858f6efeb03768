//! What is counted for one server, whatever snapshots of its set come and go.

use std::mem::{self, offset_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use callward_core::{Tool, Weight};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::drain::Drained;
use crate::health::{HealthChange, ServerHealth, SetHealth, Ticket, Verdict};
use crate::measured::{Measured, OfTool, Took};
use crate::outcome::Outcome;
use crate::stats::Tally;
use crate::tools::{Column, Tools};

/// What is counted for one server: shared by all snapshots that have it, by its id.
///
/// In this order: what a choice reads is in one cache line, from the end of `measured` to the beginning of
/// `health`. Among thousands it meets servers that nobody has looked at lately, and waits for each line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ServerState {
    measured: Measured,
    in_flight: AtomicUsize,
    draining: AtomicBool,
    /// In force now, where a call still goes by a snapshot of before.
    weight: AtomicU32,
    health: ServerHealth,
    tally: Tally,
    /// Woken when a draining server has nothing in flight any more.
    idle: Notify,
}

const _: () = {
    const LINE: usize = 64;
    let word = offset_of!(ServerState, health);
    let first_tool = offset_of!(ServerState, in_flight) - size_of::<OfTool>();
    assert!(
        first_tool / LINE == word / LINE,
        "a choice reads one line where a set has one tool"
    );
};

impl ServerState {
    /// Returns how many calls were given to the server that have not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn health(&self) -> &ServerHealth {
        &self.health
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sets whether the server gets new calls.
    pub(crate) fn set_draining(&self, draining: bool) {
        // against `begin`: whoever comes second sees the other
        self.draining.store(draining, Ordering::SeqCst);
        if !draining {
            // who waits for the end of the drain has it
            self.idle.notify_waiters();
        }
    }

    /// Sets the weight in force.
    pub(crate) fn set_weight(&self, weight: Weight) {
        self.weight.store(weight.get(), Ordering::SeqCst);
    }

    /// Counts one call until the guard is dropped. None where the server is drained by now, or
    /// lighter than the call needs: it may have been chosen by a snapshot of before.
    pub(crate) fn begin(self: &Arc<Self>, least: u32) -> Option<InFlight> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let open = !self.draining.load(Ordering::SeqCst);
        let heavy_enough = least == 0 || self.weight.load(Ordering::SeqCst) >= least;
        if !(open && heavy_enough) {
            self.leave();
            return None;
        }
        Some(InFlight {
            state: self.clone(),
            sent: None,
            ended: None,
            outcome: Outcome::Cancelled,
            measure: None,
            ticket: Ticket::Extra,
        })
    }

    fn leave(&self) {
        let before = self.in_flight.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.draining.load(Ordering::SeqCst) {
            self.idle.notify_waiters();
        }
    }

    /// Takes how one call ended: each call that began, once. This is the one place that learns from
    /// calls.
    fn ended(&self, outcome: Outcome, took: Duration, now: Instant, measure: Option<Measure>) {
        if let Some(Measure { column, origin }) = measure {
            let nanos = Tools::nanos_from(origin, now);
            self.measured.end(column, Took::of(outcome, took), nanos);
        }
        self.tally.ended(outcome, took, now);
    }

    /// Returns what calls take here.
    pub(crate) fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Returns what became of the calls here.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Waits until nothing is in flight, or the server gets calls again.
    pub(crate) async fn drained(&self) -> Drained {
        loop {
            let woken = self.idle.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !self.draining.load(Ordering::SeqCst) {
                return Drained::Undrained;
            }
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return Drained::Idle;
            }
            woken.await;
        }
    }
}

impl Default for ServerState {
    fn default() -> Self {
        Self {
            in_flight: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            weight: AtomicU32::new(Weight::DEFAULT.get()),
            health: ServerHealth::default(),
            idle: Notify::new(),
            measured: Measured::new(),
            tally: Tally::new(Instant::now()),
        }
    }
}

/// One call in flight: counted until dropped. Without a word of how it ended, it was cancelled, and
/// counts as nothing for the server's health.
#[derive(Debug)]
pub(crate) struct InFlight {
    state: Arc<ServerState>,
    sent: Option<Instant>,
    ended: Option<Instant>,
    outcome: Outcome,
    measure: Option<Measure>,
    ticket: Ticket,
}

/// Where to note what a call took.
#[derive(Debug, Clone, Copy)]
struct Measure {
    column: Option<Column>,
    /// What nanoseconds are counted from.
    origin: Instant,
}

impl InFlight {
    /// Notes the call as one of a tool, among the tools of its set.
    pub(crate) fn measure(&mut self, tools: &Tools, tool: &Arc<Tool>) {
        let column = tools.column(tool);
        if let Some(column) = column {
            self.state.measured.begin(column);
        }
        self.measure = Some(Measure {
            column,
            origin: tools.origin(),
        });
    }

    /// Says how its outcome will count for the server's health.
    pub(crate) fn with_ticket(mut self, ticket: Ticket) -> Self {
        self.ticket = ticket;
        self
    }

    /// Counts its outcome for the server's health, once.
    pub(crate) fn settle(&mut self, verdict: Verdict, set: &SetHealth) -> Option<HealthChange> {
        let ticket = mem::replace(&mut self.ticket, Ticket::Extra);
        let now = || self.ended.unwrap_or_else(Instant::now);
        self.state.health.settle(ticket, verdict, set, now)
    }

    /// Notes that the call is sent now: its time begins.
    pub(crate) fn send(&mut self) {
        self.sent = Some(Instant::now());
    }

    /// Notes how the call ended, now. All who count it go by this reading of the clock.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.ended = Some(Instant::now());
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Ticket::Probe(probe) = self.ticket {
            self.state.health.give_back(probe);
        }
        let now = self.ended.unwrap_or_else(Instant::now);
        let took = self.sent.map_or(Duration::ZERO, |sent| now - sent);
        // first what was learned, so that whoever finds the server idle finds it learned
        self.state.ended(self.outcome, took, now, self.measure);
        self.state.leave();
    }
}
