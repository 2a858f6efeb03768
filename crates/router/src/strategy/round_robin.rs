//! Each in turn.

use super::{Strategy, any};
use crate::eligible::Eligible;

/// Each server in turn, whatever the weights and whatever the tool: of as many successive calls as
/// there are fit servers, each gets one.
///
/// One counter for all calls that choose among the same servers, so a mix of tools is spread as evenly
/// as one tool. Up to eight servers take turns in the order they stand in; more in another fixed order,
/// in which the neighbours of a sick one are not met together.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct RoundRobin;

impl Strategy for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        // the ticket of one that does not fit lapses: turns stay even among those that do, where "the
        // next one after it" would get twice its share
        for _ in 0..TICKETS.min(among.len()) {
            let index = among.in_turn()?;
            if among.fits(index) {
                return Some(index);
            }
        }
        any::evenly(among, |index| among.fits(index))
    }
}

/// So many tickets are taken before all servers are looked at.
pub(super) const TICKETS: usize = 16;
