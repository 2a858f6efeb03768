//! Whose turn it is, by counting.

use std::sync::atomic::AtomicU64;

/// The turn counters of one list of servers.
///
/// One counter for all calls that choose from the whole list, whatever tool they are for, so that any
/// number of successive calls is spread evenly. Those that choose from a part of it count apart: with
/// one counter for both, reads and destructive calls that alternate would send every destructive call
/// to the same server.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    whole: AtomicU64,
    part: AtomicU64,
}

impl Turns {
    pub(crate) fn counter(&self, is_whole: bool) -> &AtomicU64 {
        if is_whole { &self.whole } else { &self.part }
    }
}

/// Takes the next of `places` in turn, leaving out those whose weight says so. 0 if there are none.
///
/// Tickets go round and round; a place of weight `w` takes its ticket in `w` of every `heaviest`
/// rounds, evenly spread. So shares are exact over `heaviest` rounds, and the only shared state
/// is one counter: smooth weighting without a lock and without a schedule to rebuild. The
/// heaviest place takes every ticket it gets, so one round of tickets always finds somebody.
pub(crate) fn by_weight(
    mut ticket: impl FnMut() -> u64,
    places: usize,
    heaviest: u32,
    weight: impl Fn(usize) -> u32,
) -> usize {
    if heaviest == 0 {
        return place(ticket(), places).0;
    }
    // others may take the tickets in between, hence some more than one round
    for _ in 0..places.saturating_mul(4) {
        let (place, round) = place(ticket(), places);
        if is_due(round, place, places, weight(place), heaviest) {
            return place;
        }
    }
    place(ticket(), places).0
}

/// Splits a ticket into the place it belongs to and the round it is of.
fn place(ticket: u64, places: usize) -> (usize, u64) {
    let count = places.max(1) as u64;
    // below `places`, so it fits
    ((ticket % count) as usize, ticket / count)
}

/// Says whether a place takes its ticket of this round.
///
/// The line `weight / heaviest * round` passes a whole number exactly `weight` times in `heaviest`
/// rounds. Each place has its own offset, so that light places do not take their turns together.
fn is_due(round: u64, place: usize, places: usize, weight: u32, heaviest: u32) -> bool {
    let (weight, heaviest) = (u64::from(weight), u64::from(heaviest));
    let offset = heaviest.saturating_mul(place as u64) / places.max(1) as u64;
    let position = (weight * (round % heaviest) + offset) % heaviest;
    position + weight >= heaviest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sequence(weights: &[u32], count: usize) -> Vec<usize> {
        let mut tickets = 0..;
        let heaviest = weights.iter().copied().max().unwrap();
        (0..count)
            .map(|_| {
                by_weight(
                    || tickets.next().unwrap(),
                    weights.len(),
                    heaviest,
                    |i| weights[i],
                )
            })
            .collect()
    }

    #[test]
    fn light_places_are_spread_over_the_cycle() {
        assert_eq!(sequence(&[5, 1, 1], 7), [0, 0, 2, 0, 0, 1, 0]);
        assert_eq!(sequence(&[3, 2], 5), [0, 1, 0, 0, 1]);
        assert_eq!(sequence(&[2, 2, 2], 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn weight_zero_gets_nothing_unless_all_have_it() {
        assert_eq!(sequence(&[3, 0], 4), [0, 0, 0, 0]);
        assert_eq!(sequence(&[0, 0], 4), [0, 1, 0, 1]);
    }

    #[test]
    fn the_largest_weights_do_not_overflow() {
        assert_eq!(sequence(&[u32::MAX, u32::MAX, 1], 4), [0, 1, 0, 1]);
        assert!(is_due(u64::MAX, 2, 3, u32::MAX, u32::MAX));
    }

    proptest! {
        #[test]
        fn shares_are_exact_over_a_cycle(
            weights in prop::collection::vec(0u32..40, 1..7),
        ) {
            let cycle: u32 = weights.iter().sum();
            prop_assume!(cycle > 0);
            let taken = sequence(&weights, cycle as usize * 2);
            for (place, weight) in weights.iter().enumerate() {
                let times = taken.iter().filter(|&&p| p == place).count();
                prop_assert_eq!(times, *weight as usize * 2, "place {}", place);
            }
        }

        #[test]
        fn no_place_is_far_from_its_share(
            weights in prop::collection::vec(1u32..40, 1..7),
            upto in 1usize..200,
        ) {
            let total: u32 = weights.iter().sum();
            let taken = sequence(&weights, upto);
            for (place, weight) in weights.iter().enumerate() {
                let times = taken.iter().filter(|&&p| p == place).count() as f64;
                let share = upto as f64 * f64::from(*weight) / f64::from(total);
                let bound = weights.len() as f64;
                prop_assert!((times - share).abs() <= bound, "place {}: {} of {}", place, times, share);
            }
        }
    }
}
