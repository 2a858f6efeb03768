//! Who waits for a place, in order of arrival. Plain data: the gate's lock is around it.

use std::collections::BTreeMap;
use std::task::Waker;

/// Stands for one call in line.
pub(super) type Ticket = u64;

/// What became of a call in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// It has a place.
    Served,
    /// It was refused in favour of a newer one.
    Shed,
}

/// Who waits for a place, and who was called and does not know yet.
#[derive(Debug, Default)]
pub(super) struct Line {
    next: Ticket,
    waiting: BTreeMap<Ticket, Waker>,
    called: BTreeMap<Ticket, Called>,
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn join(&mut self, waker: Waker) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.insert(ticket, waker);
        ticket
    }

    /// Calls who has waited longest, and returns whom to wake.
    pub(super) fn call_oldest(&mut self, called: Called) -> Option<Waker> {
        let (ticket, waker) = self.waiting.pop_first()?;
        self.called.insert(ticket, called);
        Some(waker)
    }

    /// Says what became of a call, once; keeps the new waker if nothing did. Returns the waker that
    /// is not needed any more: what dropping it may set off must not happen under the lock.
    pub(super) fn ask(&mut self, ticket: Ticket, waker: &Waker) -> (Option<Called>, Option<Waker>) {
        if let Some(called) = self.called.remove(&ticket) {
            return (Some(called), None);
        }
        let unneeded = self
            .waiting
            .get_mut(&ticket)
            .filter(|kept| !kept.will_wake(waker))
            .map(|kept| std::mem::replace(kept, waker.clone()));
        (None, unneeded)
    }

    /// Takes a call out of the line; says what had become of it. The waker is as above.
    pub(super) fn leave(&mut self, ticket: Ticket) -> (Option<Called>, Option<Waker>) {
        (self.called.remove(&ticket), self.waiting.remove(&ticket))
    }
}
