//! The fewest calls in flight.

use std::cmp::Ordering;

use super::Strategy;
use crate::eligible::Eligible;
use crate::endpoint::Endpoint;

/// The server with the fewest calls in flight for its weight; equals take turns.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct LeastConnections;

impl Strategy for LeastConnections {
    fn name(&self) -> &'static str {
        "least_connections"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        let least = among.fit().map(|(_, server)| Load::of(server)).min()?;
        let equals = || among.fit().filter(|(_, server)| Load::of(server) == least);
        // without turns, the first would get every call as long as nothing is in flight
        let turn = among.turn() % equals().count().max(1) as u64;
        let (index, _) = equals().nth(turn as usize)?;
        Some(index)
    }
}

/// Calls in flight, measured by weight.
#[derive(Debug, Clone, Copy)]
struct Load {
    in_flight: u64,
    weight: u32,
}

impl Load {
    fn of(server: &Endpoint) -> Self {
        Self {
            in_flight: server.in_flight() as u64,
            weight: server.weight().get().max(1),
        }
    }
}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> Ordering {
        // a/b against c/d without a division
        let own = self.in_flight.saturating_mul(u64::from(other.weight));
        own.cmp(&other.in_flight.saturating_mul(u64::from(self.weight)))
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Load {}
