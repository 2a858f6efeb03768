//! Places, and the line before them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use super::config::Shed;
use super::line::{Called, Line, Ticket};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Places, and the line before them.
///
/// One word holds how many have a place, and whether anybody waits. While nobody does, coming and
/// going is one exchange of that word. While somebody does, the word changes under the line's lock
/// only: who comes then goes to the lock, and so does who leaves, who hands the place to the first
/// in line. So no place is free while somebody waits, and nobody passes those who wait.
#[derive(Debug)]
pub(super) struct Gate {
    /// How many have a place, and [`SOMEBODY_WAITS`].
    word: AtomicU64,
    limit: AtomicU64,
    line: Mutex<Line>,
    max_waiting: usize,
    shed: Shed,
    /// Refused because the line was full, be it when they came or by a newer one.
    refused: AtomicU64,
    /// Refused because their time was over.
    expired: AtomicU64,
}

/// Nobody is let in without the lock: with this bit, the word is above any limit.
const SOMEBODY_WAITS: u64 = 1 << 63;

/// Whom to wake, once the lock is released.
type Wakers = SmallVec<[Waker; 2]>;

/// A place, until dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Gate>);

/// What a call that could not pass at once is told.
#[derive(Debug)]
pub(super) enum Entry {
    /// A place came free meanwhile.
    Free(Place),
    /// It is in line.
    InLine(Waiter),
    /// The line is full.
    Full,
}

impl Gate {
    pub(super) fn new(limit: usize, max_waiting: usize, shed: Shed) -> Self {
        Self {
            word: AtomicU64::new(0),
            limit: AtomicU64::new(limit as u64),
            line: Mutex::default(),
            max_waiting,
            shed,
            refused: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// Takes a place if one is free and nobody waits for it.
    pub(super) fn enter_at_once(self: Arc<Self>) -> Result<Place, Arc<Self>> {
        let limit = self.limit.load(Ordering::Acquire);
        let mut word = self.word.load(Ordering::Relaxed);
        while word < limit {
            let taken = self.word.compare_exchange_weak(
                word,
                word + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return Ok(Place(self)),
                Err(now) => word = now,
            }
        }
        Err(self)
    }

    /// Takes a place, or a ticket if there is none.
    pub(super) fn enter(self: &Arc<Self>, waker: &Waker) -> Entry {
        let mut line = self.line.lock();
        let limit = self.limit.load(Ordering::Acquire);
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let free = word < limit;
            if !free && (self.max_waiting == 0 || self.is_full_of_older(&line)) {
                drop(line);
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Entry::Full;
            }
            let next = if free {
                word + 1
            } else {
                word | SOMEBODY_WAITS
            };
            let changed =
                self.word
                    .compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire);
            match changed {
                Ok(_) if free => return Entry::Free(Place(self.clone())),
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let shed = if line.len() >= self.max_waiting {
            self.refused.fetch_add(1, Ordering::Relaxed);
            line.call_oldest(Called::Shed)
        } else {
            None
        };
        let ticket = line.join(waker.clone());
        drop(line);
        wake(shed);
        Entry::InLine(Waiter {
            gate: self.clone(),
            ticket,
            in_line: true,
        })
    }

    fn is_full_of_older(&self, line: &Line) -> bool {
        self.shed == Shed::Newest && line.len() >= self.max_waiting
    }

    /// Changes how many may have a place. If fewer than have one now, nobody is let in until enough
    /// have left.
    pub(super) fn set_limit(&self, limit: usize) {
        let line = self.line.lock();
        self.limit.store(limit as u64, Ordering::Release);
        self.serve(line);
    }

    pub(super) fn limit(&self) -> usize {
        usize::try_from(self.limit.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    pub(super) fn in_flight(&self) -> usize {
        let word = self.word.load(Ordering::Relaxed) & !SOMEBODY_WAITS;
        usize::try_from(word).unwrap_or(usize::MAX)
    }

    pub(super) fn waiting(&self) -> usize {
        self.line.lock().len()
    }

    pub(super) const fn max_waiting(&self) -> usize {
        self.max_waiting
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    pub(super) fn count_expired(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a place back.
    fn leave(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & SOMEBODY_WAITS == 0 {
            let left = self.word.compare_exchange_weak(
                word,
                word.saturating_sub(1),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match left {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        self.leave_to_next(self.line.lock());
    }

    fn leave_to_next(&self, line: MutexGuard<'_, Line>) {
        self.word.fetch_sub(1, Ordering::AcqRel);
        self.serve(line);
    }

    /// Lets in whom there is room for, and takes the bit away if nobody waits any more. While it is
    /// set, and it is as long as somebody waits, nobody else changes the word.
    fn serve(&self, mut line: MutexGuard<'_, Line>) {
        let mut wakers = Wakers::new();
        let limit = self.limit.load(Ordering::Acquire);
        while self.word.load(Ordering::Acquire) & !SOMEBODY_WAITS < limit {
            let Some(waker) = line.call_oldest(Called::Served) else {
                break;
            };
            self.word.fetch_add(1, Ordering::AcqRel);
            wakers.push(waker);
        }
        if line.is_empty() {
            self.word.fetch_and(!SOMEBODY_WAITS, Ordering::AcqRel);
        }
        drop(line);
        wake(wakers);
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// One call in line. Resolves to its place, or to nothing if it was refused in favour of a newer
/// one. A drop leaves the line.
#[derive(Debug)]
pub(super) struct Waiter {
    gate: Arc<Gate>,
    ticket: Ticket,
    in_line: bool,
}

impl Future for Waiter {
    type Output = Option<Place>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (called, _unneeded) = self.gate.line.lock().ask(self.ticket, cx.waker());
        let Some(called) = called else {
            return Poll::Pending;
        };
        self.in_line = false;
        Poll::Ready(match called {
            Called::Served => Some(Place(self.gate.clone())),
            Called::Shed => None,
        })
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.in_line {
            return;
        }
        let mut line = self.gate.line.lock();
        let (called, _unneeded) = line.leave(self.ticket);
        match called {
            Some(Called::Served) => self.gate.leave_to_next(line),
            // nobody may wait any more
            Some(Called::Shed) | None => self.gate.serve(line),
        }
    }
}
