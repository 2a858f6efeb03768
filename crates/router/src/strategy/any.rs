//! One of those that fit, where few do: all servers are looked at.

use crate::eligible::Eligible;

/// Takes any that is wanted, each as often as any other.
pub(super) fn evenly(among: &Eligible<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let wanted = (0..among.len()).filter(|index| wanted(*index));
    reservoir(wanted.map(|index| (index, 1)))
}

/// Takes any that is wanted, each as often as its weight says; any at all where none has a weight.
pub(super) fn by_weight(among: &Eligible<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    one_of(among, (0..among.len()).filter(|index| wanted(*index)))
}

/// Takes one of these, each as often as its weight says.
pub(super) fn one_of(among: &Eligible<'_>, indexes: impl Iterator<Item = usize>) -> Option<usize> {
    reservoir(indexes.filter_map(|index| {
        let weight = among.server(index)?.weight().get();
        Some((index, u64::from(weight)))
    }))
}

/// Takes one in a single pass: each replaces the one before it with its part of the weight so far
/// (Chao, "A general purpose unequal probability sampling plan", 1982).
fn reservoir(all: impl Iterator<Item = (usize, u64)>) -> Option<usize> {
    let (mut taken, mut sum, mut without) = (None, 0, 0);
    for (index, weight) in all {
        sum += weight;
        let takes = if sum == 0 {
            without += 1;
            fastrand::u64(..without) == 0
        } else {
            fastrand::u64(..sum) < weight
        };
        if takes {
            taken = Some(index);
        }
    }
    taken
}
