use super::*;
use proptest::prelude::*;

/// Weights as a snapshot has them: heaviest first.
fn weights(least: u32) -> impl Strategy<Value = Vec<u32>> {
    let weight = prop_oneof![least..=100, Just(50), Just(least), Just(100)];
    prop::collection::vec(weight, 1..40).prop_map(|mut weights| {
        weights.sort_unstable_by(|a, b| b.cmp(a));
        weights
    })
}

fn cut() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.0), 0.0..1.0]
}

fn cut_of(weights: &[u32], share: f64) -> usize {
    ((weights.len() as f64 * share) as usize).clamp(1, weights.len())
}

/// Counts each place over all points of the circle.
fn points(draw: &Draw, cut: usize) -> Vec<u64> {
    let part = draw.part(cut).unwrap();
    let mut counts = vec![0; cut];
    for point in 0..part.weight {
        counts[draw.place(point, &part)] += 1;
    }
    counts
}

fn turns(draw: &Draw, cut: usize, tickets: std::ops::Range<u64>) -> Vec<u64> {
    let mut counts = vec![0; cut];
    for ticket in tickets {
        counts[draw.turn(ticket, cut).unwrap()] += 1;
    }
    counts
}

#[test]
fn nobody_is_drawn_from_nothing() {
    let draw = Draw::new([]);
    assert_eq!(draw.one(3), None);
    assert_eq!(draw.two(3), None);
    assert_eq!(draw.turn(3, 3), None);
    assert_eq!(Draw::new([7, 7]).one(0), None);
    assert_eq!(Draw::new([7, 7]).plain_turn(1, 0), None);
}

#[test]
fn a_cut_beyond_the_end_is_the_end() {
    let draw = Draw::new([7, 7]);
    assert_eq!(points(&draw, 2), [7, 7]);
    assert_eq!(draw.part(9), draw.part(2));
}

#[test]
fn few_places_take_turns_in_their_order_and_many_do_not() {
    let order = |count: u64| -> Vec<usize> {
        let draw = Draw::new(vec![50; count as usize]);
        (0..count)
            .map(|ticket| draw.turn(ticket, count as usize).unwrap())
            .collect()
    };
    assert_eq!(order(3), [0, 1, 2]);
    assert_eq!(order(8), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(order(10), [0, 7, 4, 1, 8, 5, 2, 9, 6, 3]);
}

#[test]
fn light_places_are_spread_over_the_round() {
    let draw = Draw::new([50, 10, 10]);
    let turns: Vec<_> = (0..7).map(|t| draw.turn(t, 3).unwrap()).collect();
    assert_eq!(turns, [0, 0, 0, 1, 0, 2, 0]);
    let draw = Draw::new([60, 40]);
    let turns: Vec<_> = (0..10).map(|t| draw.turn(t, 2).unwrap()).collect();
    assert_eq!(turns.iter().filter(|place| **place == 1).count(), 4);
}

#[test]
fn two_differ_where_no_place_outweighs_all_others() {
    fastrand::seed(1);
    for weights in [
        vec![50, 50],
        vec![60, 30, 30],
        vec![50; 10],
        vec![100, 90, 10],
    ] {
        let draw = Draw::new(weights.clone());
        for _ in 0..500 {
            let (one, other) = draw.two(weights.len()).unwrap();
            assert_ne!(one, other, "{weights:?}");
        }
    }
    // of 4:1 the light one can be in two of five pairs, so three are no pair
    let draw = Draw::new([80, 20]);
    let meets = (0..5000).filter(|_| {
        let (one, other) = draw.two(2).unwrap();
        one == other
    });
    let meets = meets.count();
    assert!((2700..3300).contains(&meets), "{meets}");
}

proptest! {
    #[test]
    fn each_place_has_as_many_points_as_weight(weights in weights(0), share in cut()) {
        let cut = cut_of(&weights, share);
        let found = points(&Draw::new(weights.iter().copied()), cut);
        let standbys = weights[..cut].iter().all(|weight| *weight == 0);
        let expected: Vec<u64> = weights[..cut]
            .iter()
            .map(|weight| if standbys { 1 } else { u64::from(*weight) })
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn shares_are_exact_in_any_window_of_all_weights(
        weights in weights(0),
        share in cut(),
        start in 0u64..5000,
    ) {
        let cut = cut_of(&weights, share);
        let total: u64 = weights[..cut].iter().map(|weight| u64::from(*weight)).sum();
        prop_assume!(total > 0);
        let draw = Draw::new(weights.iter().copied());
        let expected: Vec<u64> = weights[..cut].iter().map(|weight| u64::from(*weight)).collect();
        prop_assert_eq!(turns(&draw, cut, start..start + total), expected);
    }

    #[test]
    fn a_part_of_a_round_is_spread_too(weights in weights(1), upto in 1u64..3000) {
        let total: u32 = weights.iter().sum();
        let draw = Draw::new(weights.iter().copied());
        let found = turns(&draw, weights.len(), 0..upto);
        // what lies in a part of the circle is off by no more than grows with the logarithm; in
        // blocks, each place at once, it would be off by the weights
        let bound = 2.0 + (upto as f64).log2();
        for (place, weight) in weights.iter().enumerate() {
            let share = upto as f64 * f64::from(*weight) / f64::from(total);
            let off = (found[place] as f64 - share).abs();
            prop_assert!(off <= bound, "place {place}: {} of {share}", found[place]);
        }
    }

    #[test]
    fn plain_turns_are_even_in_any_window(
        weights in weights(0),
        share in cut(),
        start in 0u64..5000,
    ) {
        let cut = cut_of(&weights, share);
        let draw = Draw::new(weights.iter().copied());
        let mut seen = vec![0; cut];
        for ticket in start..start + cut as u64 {
            seen[draw.plain_turn(ticket, cut).unwrap()] += 1;
        }
        prop_assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
    }

    #[test]
    fn either_of_two_alone_is_as_frequent_as_its_weight(
        weights in weights(0),
        seed in any::<u64>(),
    ) {
        let total: u32 = weights.iter().sum();
        prop_assume!(total > 0);
        let draw = Draw::new(weights.iter().copied());
        fastrand::seed(seed);
        let mut counts = vec![(0u32, 0u32); weights.len()];
        let rounds = 4000;
        for _ in 0..rounds {
            let (one, other) = draw.two(weights.len()).unwrap();
            counts[one].0 += 1;
            counts[other].1 += 1;
        }
        for (place, weight) in weights.iter().enumerate() {
            let share = f64::from(*weight) / f64::from(total);
            // six standard deviations, and some more where there are few, which are not spread so evenly
            let bound = 6.0 * (f64::from(rounds) * share * (1.0 - share)).sqrt() + 6.0;
            for count in [counts[place].0, counts[place].1] {
                let off = (f64::from(count) - f64::from(rounds) * share).abs();
                prop_assert!(off <= bound, "place {place}: {count} of {share}");
            }
        }
    }
}
