//! Each in turn.

use super::Strategy;
use crate::eligible::Eligible;

/// Each server in turn, whatever the weights and whatever the tool: any `n` successive calls to `n`
/// fit servers give one to each.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct RoundRobin;

impl Strategy for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        if among.is_empty() {
            return None;
        }
        let ticket = among.turn();
        // below the number of servers, so it fits
        let index = (ticket % among.len() as u64) as usize;
        if among.fits(index) {
            return Some(index);
        }
        // turns among those that are fit, not "the next one after an unfit one", so that the
        // neighbour of a sick server does not get twice its share
        let fit = among.fit().count();
        if fit == 0 {
            return None;
        }
        let (index, _) = among.fit().nth((ticket % fit as u64) as usize)?;
        Some(index)
    }
}
