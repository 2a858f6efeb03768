//! The view of a replica set that a strategy gets.

use std::sync::atomic::Ordering;

use callward_core::{ServerId, ToolCall};
use smallvec::SmallVec;

use crate::endpoint::Endpoint;
use crate::set::Turns;

/// The servers that one call may go to: all that a [`Strategy`](crate::Strategy) sees.
///
/// Numbered from 0, heaviest first, in the order they were added where weights are equal. Each is
/// as good as the others by the rule: servers that are too light for the call, unavailable, or
/// refused it before are not among them while others are.
#[derive(Debug)]
pub struct Candidates<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// All servers of the set.
    pub(crate) endpoints: &'a [Endpoint],
    /// Where the candidates are in the set.
    pub(crate) places: Places,
    pub(crate) turns: &'a Turns,
    /// No call is sent: nothing is to be remembered of the choice.
    pub is_preview: bool,
}

/// Places of servers in their set, or numbers of candidates.
pub(crate) type Places = SmallVec<[usize; 16]>;

impl<'a> Candidates<'a> {
    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns a candidate by its number.
    #[must_use]
    pub fn server(&self, index: usize) -> Option<&'a Endpoint> {
        self.endpoints.get(*self.places.get(index)?)
    }

    /// Returns all of them, heaviest first, each with its number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'a Endpoint)> + '_ {
        let servers = self.places.iter().enumerate();
        servers.filter_map(|(index, place)| Some((index, self.endpoints.get(*place)?)))
    }

    /// Takes the next number of a counter that all calls with the same candidates share. A preview
    /// takes none, and sees the next one.
    #[must_use]
    pub fn turn(&self) -> u64 {
        let hash = |hash: usize, place: &usize| hash.wrapping_mul(31).wrapping_add(place + 1);
        let group = self.places.iter().fold(self.places.len(), hash);
        let Some(counter) = self.turns.get(group % self.turns.len()) else {
            return 0;
        };
        if self.is_preview {
            counter.load(Ordering::Relaxed)
        } else {
            counter.fetch_add(1, Ordering::Relaxed)
        }
    }

    /// Returns what is known of a server of the set, candidate or not.
    pub(crate) fn known(&self, server: &ServerId) -> Option<&'a Endpoint> {
        self.endpoints.iter().find(|known| known.server() == server)
    }

    /// Returns the numbers of all candidates.
    pub(crate) fn indexes(&self) -> Places {
        (0..self.len()).collect()
    }

    /// Returns the weight of a candidate.
    pub(crate) fn weight(&self, index: usize) -> u64 {
        self.server(index)
            .map_or(0, |server| server.weight().get().into())
    }

    /// Returns how many calls are in flight at a candidate.
    pub(crate) fn in_flight(&self, index: usize) -> usize {
        self.server(index).map_or(usize::MAX, Endpoint::in_flight)
    }
}
