//! One of those that fit, where few do: all servers are looked at.

use crate::eligible::Eligible;
use crate::endpoint::Endpoint;

/// Takes any that is wanted, each as often as any other.
pub(super) fn evenly(among: &Eligible<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    one_of(among, wanted, |_| 1)
}

/// Takes any that is wanted, each as often as its weight says; any at all where none has a weight.
pub(super) fn by_weight(among: &Eligible<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    one_of(among, wanted, |server| u64::from(server.weight().get()))
}

/// Takes one in a single pass: each replaces the one before it with its part of the weight so far
/// (Chao, "A general purpose unequal probability sampling plan", 1982).
fn one_of(
    among: &Eligible<'_>,
    wanted: impl Fn(usize) -> bool,
    weight: impl Fn(&Endpoint) -> u64,
) -> Option<usize> {
    let (mut taken, mut sum, mut without) = (None, 0, 0);
    for index in (0..among.len()).filter(|index| wanted(*index)) {
        let own = among.server(index).map_or(0, &weight);
        sum += own;
        let takes = if sum == 0 {
            without += 1;
            fastrand::u64(..without) == 0
        } else {
            fastrand::u64(..sum) < own
        };
        if takes {
            taken = Some(index);
        }
    }
    taken
}
