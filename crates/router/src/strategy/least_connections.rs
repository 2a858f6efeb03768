//! The fewest calls in flight.

use super::{Strategy, any, few};
use crate::eligible::Eligible;
use crate::endpoint::Endpoint;

/// The server with the fewest calls in flight for its weight; equals take turns by weight.
///
/// Among up to 16 servers all are compared. Among more, two are drawn by weight and the one with fewer
/// calls is taken, as Envoy's least-request balancer does.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct LeastConnections;

impl Strategy for LeastConnections {
    fn name(&self) -> &'static str {
        "least_connections"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        if among.len() > few::FEW {
            return of_two(among).or_else(|| any::by_weight(among, |index| among.fits(index)));
        }
        // without turns, the first would get every call as long as nothing is in flight
        let turn = among.in_turn_by_weight()?;
        if in_flight(among, turn) == 0 && among.fits(turn) {
            return Some(turn);
        }
        let load = |index| {
            let server = among.server(index)?;
            Some((index, load(server)))
        };
        let loads = few::starting_at(turn, among.len()).filter_map(load);
        few::cheapest(loads, |index| among.fits(index))
    }
}

fn of_two(among: &Eligible<'_>) -> Option<usize> {
    for _ in 0..PAIRS {
        let (one, other) = among.draw_two()?;
        let (first, second) = match in_flight(among, other) < in_flight(among, one) {
            true => (other, one),
            false => (one, other),
        };
        if let Some(index) = [first, second].into_iter().find(|index| among.fits(*index)) {
            return Some(index);
        }
    }
    None
}

fn in_flight(among: &Eligible<'_>, index: usize) -> usize {
    among.server(index).map_or(usize::MAX, Endpoint::in_flight)
}

/// Calls in flight, measured by weight.
fn load(server: &Endpoint) -> f64 {
    let weight = f64::from(server.weight().get().max(1)) * server.share();
    server.in_flight() as f64 / weight
}

/// So many pairs are drawn before all servers are looked at.
const PAIRS: usize = 4;
