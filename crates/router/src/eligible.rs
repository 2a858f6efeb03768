//! What a strategy sees of a replica set.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::Ordering;

use tollgate_core::ToolCall;

use crate::endpoint::Endpoint;
use crate::flaws::{Flaws, Judge};
use crate::lane::Lane;

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
    pub(crate) endpoints: &'a [Endpoint],
    pub(crate) lane: &'a Lane,
    pub(crate) len: usize,
    /// Places in the set that were tried for this call.
    pub(crate) tried: &'a [u32],
    /// What is put up with this time, exactly.
    pub(crate) flaws: Flaws,
    /// Counters are read and not moved; how many tickets were taken all the same.
    pub(crate) dry: Option<Cell<u64>>,
}

impl<'a> Eligible<'a> {
    /// Returns the call.
    #[must_use]
    pub fn call(&self) -> &'a ToolCall {
        self.judge.call
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
        self.server(index).is_some_and(|endpoint| {
            !self.was_tried(index) && self.judge.flaws(endpoint) == self.flaws
        })
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
            Some(taken) => counter
                .load(Ordering::Relaxed)
                .wrapping_add(taken.replace(taken.get() + 1)),
            None => counter.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Draws a server at random, each as often as its weight says, fit or not. `None` if there are
    /// none.
    #[must_use]
    pub fn draw(&self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let heaviest = self.server(0)?.weight().get();
        // a light one is put back as often as it is lighter; the last drawn is kept in any case
        for _ in 0..DRAWS {
            let index = fastrand::usize(..self.len);
            let weight = self.server(index)?.weight().get();
            if weight == heaviest || fastrand::u32(..heaviest) < weight {
                return Some(index);
            }
        }
        Some(fastrand::usize(..self.len))
    }

    fn was_tried(&self, index: usize) -> bool {
        if self.tried.is_empty() {
            return false;
        }
        let place = self.lane.place(index);
        self.tried.iter().any(|tried| *tried as usize == place)
    }
}

/// So often a light server is put back.
const DRAWS: usize = 32;

impl fmt::Debug for Eligible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = (0..self.len).filter_map(|index| self.server(index));
        f.debug_list().entries(servers).finish()
    }
}
