//! What a strategy sees of a replica set.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{ServerId, ToolCall};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::affinity::rendezvous::Candidate;
use crate::endpoint::Endpoint;
use crate::ewma::Estimate;
use crate::flaws::{Flaws, Judge};
use crate::groups::Groups;
use crate::lane::Lane;
use crate::set::Places;
use crate::tools::{Column, Tools};

/// The servers that may get one call: all that a [`Strategy`](crate::Strategy) sees.
///
/// Numbered from 0, heaviest first, in the order they were given where weights are equal. The
/// annotation rule was applied before: servers that are too light for the call are not in here, so no
/// strategy can choose one.
///
/// Which of them [fit](Self::fits) is found out when it is asked for, one by one, because it is not
/// free: a strategy that draws two servers out of ten thousand looks at two.
pub struct Eligible<'a> {
    pub(crate) judge: Judge<'a>,
    /// All servers of the set.
    pub(crate) endpoints: &'a [Endpoint],
    /// What each takes part with where keys are ranked.
    pub(crate) candidates: &'a [Candidate],
    /// Where each of them stands.
    pub(crate) places: &'a Places,
    pub(crate) lane: &'a Lane,
    pub(crate) len: usize,
    /// Places in the set that were tried for this call.
    pub(crate) tried: &'a [u32],
    /// What is put up with this time, exactly.
    pub(crate) flaws: Flaws,
    /// Counters are read and not moved: where the tickets come from instead.
    pub(crate) dry: Option<&'a Tickets>,
    pub(crate) groups: [&'a Groups; 2],
    pub(crate) tools: &'a Tools,
    /// Asked for once, if at all.
    pub(crate) column: OnceCell<Option<Column>>,
    pub(crate) now: OnceCell<u64>,
    /// What was found to fit last: a strategy asks before it answers, and its answer is checked.
    pub(crate) found: Cell<Option<usize>>,
}

impl<'a> Eligible<'a> {
    /// Returns the call.
    #[must_use]
    pub fn call(&self) -> &'a ToolCall {
        self.judge.rule.call
    }

    /// Returns how many there are, fit or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Says whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a server by its number.
    #[must_use]
    pub fn server(&self, index: usize) -> Option<&'a Endpoint> {
        if index >= self.len {
            return None;
        }
        self.endpoints.get(self.lane.place(index))
    }

    /// Says whether a server can be chosen now: nothing speaks against it that does not speak against
    /// all others, too, and it was not tried for this call.
    #[must_use]
    pub fn fits(&self, index: usize) -> bool {
        if self.found.get() == Some(index) {
            return true;
        }
        let fits = self.server(index).is_some_and(|endpoint| {
            !self.was_tried(index) && self.judge.flaws(endpoint) == self.flaws
        });
        if fits {
            self.found.set(Some(index));
        }
        fits
    }

    /// Returns those that fit, heaviest first, each with its number.
    pub fn fit(&self) -> impl Iterator<Item = (usize, &'a Endpoint)> + '_ {
        (0..self.len)
            .filter(|index| self.fits(*index))
            .filter_map(|index| Some((index, self.server(index)?)))
    }

    /// Takes the next ticket of a counter that all calls share which choose among the same servers.
    #[must_use]
    pub fn turn(&self) -> u64 {
        let is_whole = self.flaws == Flaws::NONE && self.len == self.lane.at_least(1);
        let counter = self.lane.turns().counter(is_whole);
        match &self.dry {
            Some(tickets) => tickets.take(counter),
            None => counter.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the server whose turn it is whatever the weights, fit or not. `None` if there are none.
    ///
    /// Of as many calls in a row as there are servers, each gets one.
    #[must_use]
    pub fn in_turn(&self) -> Option<usize> {
        self.lane.draw().plain_turn(self.turn(), self.len)
    }

    /// Returns the server whose turn it is by weight, fit or not. `None` if there are none.
    ///
    /// Of as many calls in a row as all weights together, each server gets as many as its weight.
    #[must_use]
    pub fn in_turn_by_weight(&self) -> Option<usize> {
        self.lane.draw().turn(self.turn(), self.len)
    }

    /// Draws a server at random, each as often as its weight says, fit or not. `None` if there are
    /// none.
    #[must_use]
    pub fn draw(&self) -> Option<usize> {
        let mut drawn = None;
        for _ in 0..DRAWS {
            drawn = self.lane.draw().one(self.len);
            if self.is_due(drawn?) {
                break;
            }
        }
        drawn
    }

    /// Says by chance whether a server that has just come, and gets less than its share, is due.
    fn is_due(&self, index: usize) -> bool {
        let share = self.server(index).map_or(1.0, Endpoint::share);
        share >= 1.0 || fastrand::f64() < share
    }

    /// Draws two servers at random, fit or not: either one as often as its weight says, and two
    /// different ones if no server outweighs all others together. `None` if there are none.
    #[must_use]
    pub fn draw_two(&self) -> Option<(usize, usize)> {
        let (one, other) = self.lane.draw().two(self.len)?;
        match (self.is_due(one), self.is_due(other)) {
            (true, true) => Some((one, other)),
            (true, false) => Some((one, self.draw()?)),
            (false, true) => Some((self.draw()?, other)),
            (false, false) => Some((self.draw()?, self.draw()?)),
        }
    }

    /// Returns what the call is expected to take at a server: by the tool's own calls there, or else by
    /// all calls there. `None` if it was not called lately.
    #[must_use]
    pub fn latency(&self, index: usize) -> Option<Duration> {
        let of_tool = self.of_tool(index);
        let found = match of_tool.trust > 0.0 {
            true => of_tool,
            false => self.of_all(index),
        };
        (found.trust > 0.0).then(|| Duration::from_nanos(found.nanos as u64))
    }

    /// Returns what is known of the tool's calls at a server.
    pub(crate) fn of_tool(&self, index: usize) -> Estimate {
        let (Some(server), Some(column)) = (self.server(index), self.column()) else {
            return Estimate::UNKNOWN;
        };
        server.state().measured().of_tool(column, self.now())
    }

    /// Returns what is known of all calls at a server.
    pub(crate) fn of_all(&self, index: usize) -> Estimate {
        let server = self.server(index);
        server.map_or(Estimate::UNKNOWN, |server| {
            server.state().measured().of_all(self.now())
        })
    }

    fn column(&self) -> Option<Column> {
        *self
            .column
            .get_or_init(|| self.tools.find(self.call().tool()))
    }

    fn now(&self) -> u64 {
        *self
            .now
            .get_or_init(|| Tools::nanos_from(self.tools.origin(), Instant::now()))
    }

    /// Returns who is in which category.
    pub(crate) fn categories(&self) -> &'a Groups {
        let [categories, _] = self.groups;
        categories
    }

    /// Returns who has which capability.
    pub(crate) fn capabilities(&self) -> &'a Groups {
        let [_, capabilities] = self.groups;
        capabilities
    }

    /// Finds where in its set a server stands, eligible or not; it is looked for at `hint` first.
    pub(crate) fn place_of(&self, server: &ServerId, hint: usize) -> Option<usize> {
        let is_there = |known: &Endpoint| known.server() == server;
        if self.endpoints.get(hint).is_some_and(is_there) {
            return Some(hint);
        }
        self.places.get(server).map(|place| *place as usize)
    }

    /// Returns the server that stands at a place of the set, eligible or not.
    pub(crate) fn at(&self, place: usize) -> Option<&'a Endpoint> {
        self.endpoints.get(place)
    }

    /// Returns what a server takes part with where keys are ranked.
    pub(crate) fn candidate(&self, index: usize) -> Option<Candidate> {
        self.candidates.get(self.lane.place(index)).copied()
    }

    /// Returns where in its set a server stands, by its number.
    pub(crate) fn place(&self, index: usize) -> usize {
        self.lane.place(index)
    }

    /// Returns the number of the server that stands at a place of the set, if it is eligible.
    pub(crate) fn index_of(&self, place: usize) -> Option<usize> {
        self.lane.index(place).filter(|index| *index < self.len)
    }

    /// Says whether a server was tried for this call before.
    pub(crate) fn is_fallback(&self) -> bool {
        !self.tried.is_empty()
    }

    /// Says whether this only looks what would be chosen: nothing is to be remembered.
    pub(crate) fn is_dry(&self) -> bool {
        self.dry.is_some()
    }

    fn was_tried(&self, index: usize) -> bool {
        if self.tried.is_empty() {
            return false;
        }
        let place = self.lane.place(index);
        self.tried.iter().any(|tried| *tried as usize == place)
    }
}

/// Tickets of a walk that is no call's: the next ones of each counter, which stays where it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tickets(RefCell<SmallVec<[(usize, u64); 2]>>);

impl Tickets {
    fn take(&self, counter: &AtomicU64) -> u64 {
        let next = counter.load(Ordering::Relaxed);
        let address = std::ptr::from_ref(counter).addr();
        let mut all = self.0.borrow_mut();
        match all.iter_mut().find(|(of, _)| *of == address) {
            Some((_, taken)) => {
                *taken += 1;
                next.wrapping_add(*taken)
            }
            None => {
                all.push((address, 0));
                next
            }
        }
    }
}

/// So often a server that has just come is put back.
const DRAWS: usize = 8;

impl fmt::Debug for Eligible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = (0..self.len).filter_map(|index| self.server(index));
        f.debug_list().entries(servers).finish()
    }
}
