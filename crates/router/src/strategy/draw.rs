//! Drawing candidates by weight, at random or in turn.

use crate::candidates::{Candidates, Places};

/// Draws one of these, each as often as its weight says; evenly where none has a weight.
pub(super) fn one(candidates: &Candidates<'_>, among: &[usize]) -> Option<usize> {
    let total = total(candidates, among);
    let ticket = fastrand::u64(..total);
    at(candidates, among, ticket)
}

/// Draws two different ones of these by weight; the same one twice if there is only one.
pub(super) fn two(candidates: &Candidates<'_>, among: &[usize]) -> Option<[usize; 2]> {
    let first = one(candidates, among)?;
    let rest: Places = among.iter().copied().filter(|one| *one != first).collect();
    let second = one(candidates, &rest).unwrap_or(first);
    Some([first, second])
}

/// Returns the candidate whose turn it is by weight. Of as many consecutive tickets as all weights
/// together, divided by their greatest common divisor, each gets as many as its weight.
pub(super) fn in_turn(candidates: &Candidates<'_>, ticket: u64) -> Option<usize> {
    let among = candidates.indexes();
    let divisor = among.iter().fold(0, |divisor, index| {
        greatest_common_divisor(candidates.weight(*index), divisor)
    });
    let rounds = (total(candidates, &among) / divisor.max(1)).max(1);
    // a stride near the golden ratio spreads the turns of each; prime to the rounds, it meets all
    let mut stride = (rounds * 618 / 1000).max(1);
    while greatest_common_divisor(stride, rounds) != 1 {
        stride += 1;
    }
    let ticket = ticket % rounds * stride % rounds;
    at(candidates, &among, ticket * divisor.max(1))
}

/// Returns the sum of the weights; their number where none has a weight. At least 1.
fn total(candidates: &Candidates<'_>, among: &[usize]) -> u64 {
    let sum: u64 = among.iter().map(|index| candidates.weight(*index)).sum();
    let count = u64::try_from(among.len()).unwrap_or(u64::MAX);
    if sum > 0 { sum } else { count.max(1) }
}

/// Returns the one that has a ticket, where each has as many as its weight.
fn at(candidates: &Candidates<'_>, among: &[usize], ticket: u64) -> Option<usize> {
    let has_weights = among.iter().any(|index| candidates.weight(*index) > 0);
    let mut left = ticket;
    for index in among {
        let own = if has_weights {
            candidates.weight(*index)
        } else {
            1
        };
        if left < own {
            return Some(*index);
        }
        left -= own;
    }
    among.first().copied()
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        greatest_common_divisor(other, one % other)
    }
}
