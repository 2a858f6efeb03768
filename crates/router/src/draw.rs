//! Picking a place in proportion to weights that do not change: at random, or in turn.

/// The weights of a snapshot, ready to be drawn from.
///
/// Weights are whole numbers up to 100 and places are kept heaviest first, so a set of any size has few
/// *runs* of equal weight. A number below the sum of all weights falls into a run, and is divided by
/// that run's weight: a draw costs the same among ten places and ten thousand, reads nothing but a few
/// runs, and is exact. (Walker's alias method needs an entry for each place, and a table for each cut.)
///
/// Every method takes a `cut`: only the places before it count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draw {
    runs: Box<[Run]>,
    places: usize,
}

/// Neighbours of equal weight.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: usize,
    end: usize,
    weight: u64,
    /// The weight of all places before this run.
    before: u64,
    /// All places up to the end of this run.
    upto: Part,
}

/// The places before some cut, as a circle with as many points as they have weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Part {
    places: u64,
    weight: u64,
    heaviest: u64,
    /// What divides every weight.
    divisor: u64,
    /// All weights are the same.
    even: bool,
    /// The step of turns by weight.
    step: u64,
    /// The step of turns that leave weights aside.
    plain_step: u64,
}

impl Draw {
    /// Reads the weights, each a place. They may come in any order; the fewer neighbours differ,
    /// the faster is a draw.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let mut places = 0;
        for weight in weights.into_iter().map(u64::from) {
            match runs.last_mut() {
                Some(run) if run.weight == weight => run.end += 1,
                last => {
                    let before = last.map_or(0, |run| run.before + run.points(run.end));
                    runs.push(Run {
                        first: places,
                        end: places + 1,
                        weight,
                        before,
                        upto: Part::default(),
                    });
                }
            }
            places += 1;
        }
        let (mut heaviest, mut divisor) = (0, 0);
        for run in &mut runs {
            heaviest = run.weight.max(heaviest);
            divisor = greatest_divisor(divisor, run.weight);
            run.upto = Part::new(run, run.end, heaviest, divisor);
        }
        Self {
            runs: runs.into(),
            places,
        }
    }

    /// Returns all weights together.
    pub(crate) fn weight(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.upto.weight)
    }

    /// Draws one place at random. Weight 0 is drawn only if all have it.
    pub(crate) fn one(&self, cut: usize) -> Option<usize> {
        let part = self.part(cut)?;
        Some(self.place(fastrand::u64(..part.weight), &part))
    }

    /// Draws two places at random. Either one alone comes up in proportion to its weight, and they
    /// differ as often as that allows: always, unless one outweighs all others together.
    ///
    /// Two draws apart would meet in one place every tenth time among ten, and such a pair is no
    /// choice. To draw again until they differ would give a light place the share of a heavy one. So
    /// the second is the first, moved round the circle by at least the weight of the heaviest.
    pub(crate) fn two(&self, cut: usize) -> Option<(usize, usize)> {
        let part = self.part(cut)?;
        if part.places == 1 {
            return Some((0, 0));
        }
        let first = fastrand::u64(..part.weight);
        let distance = if part.even {
            fastrand::u64(1..part.places) * (part.weight / part.places)
        } else {
            let least = part.heaviest.min(part.weight / 2);
            fastrand::u64(least..=part.weight - least)
        };
        let second = (first + distance) % part.weight;
        Some((self.place(first, &part), self.place(second, &part)))
    }

    /// Returns whose turn it is by weight: of as many tickets in a row as all weights together, each
    /// place gets as many as its weight.
    ///
    /// Tickets go round the circle in steps of about its golden section, which spreads those of one
    /// place evenly (the three-distance theorem) and meets each point once in a round. Weights with a
    /// common divisor need as many times fewer: among equal weights a round is the number of places.
    pub(crate) fn turn(&self, ticket: u64, cut: usize) -> Option<usize> {
        let part = self.part(cut)?;
        let point = spread(ticket, part.weight / part.divisor, part.step) * part.divisor;
        Some(self.place(point, &part))
    }

    /// Returns whose turn it is whatever the weights: of as many tickets in a row as there are places,
    /// each gets one.
    pub(crate) fn plain_turn(&self, ticket: u64, cut: usize) -> Option<usize> {
        let part = self.part(cut)?;
        // below the number of places
        Some(spread(ticket, part.places, part.plain_step) as usize)
    }

    fn part(&self, cut: usize) -> Option<Part> {
        let cut = cut.min(self.places);
        let last = cut.checked_sub(1)?;
        let place = self.find(|run| run.first <= last)?;
        let run = self.runs.get(place)?;
        if cut == run.end {
            // who asks for a least weight cuts between runs, as the heaviest stand first
            return Some(run.upto);
        }
        Some(Part::new(run, cut, run.upto.heaviest, run.upto.divisor))
    }

    /// Finds the place that a point of the circle belongs to.
    fn place(&self, point: u64, part: &Part) -> usize {
        if part.even {
            let width = (part.weight / part.places).max(1);
            return (point / width) as usize;
        }
        let run = self
            .find(|run| run.before <= point)
            .and_then(|place| self.runs.get(place));
        run.map_or(0, |run| {
            let within = (point - run.before).checked_div(run.weight).unwrap_or(0);
            run.first + within as usize
        })
    }

    /// Returns the place of the last run of those at the start for which something holds.
    fn find(&self, holds: impl Fn(&Run) -> bool) -> Option<usize> {
        let end = match &*self.runs {
            // most sets have one or two weights
            [_] => 1,
            [_, second] => 1 + usize::from(holds(second)),
            runs => runs.partition_point(holds),
        };
        end.checked_sub(1)
    }
}

impl Run {
    /// Returns the weight of the places before a cut that is in this run.
    fn points(&self, cut: usize) -> u64 {
        self.weight * (cut - self.first) as u64
    }
}

impl Part {
    fn new(run: &Run, cut: usize, heaviest: u64, divisor: u64) -> Self {
        let places = cut as u64;
        let plain_step = step(places, IN_ORDER);
        match run.before + run.points(cut) {
            // nothing but standbys: one is as good as another
            0 => Self {
                places,
                weight: places,
                heaviest: 1,
                divisor: 1,
                even: true,
                step: plain_step,
                plain_step,
            },
            weight => Self {
                places,
                weight,
                heaviest,
                divisor,
                even: run.first == 0,
                // equal weights take turns as if there were none
                step: match run.first {
                    0 => plain_step,
                    _ => step(weight / divisor, 0),
                },
                plain_step,
            },
        }
    }
}

/// Up to so many places of equal weight take turns in the order they stand in. Among more, neighbours
/// that are sick together should not be met one after another.
const IN_ORDER: u64 = 8;

/// Returns a step that meets every point of a circle once in a round, and is as far from a simple
/// fraction of it as the golden section, or nearly so; the next point where there are few.
fn step(round: u64, few: u64) -> u64 {
    if round <= few {
        return 1;
    }
    let golden = (round / 1000).saturating_mul(618) + round % 1000 * 618 / 1000;
    (golden.max(1)..round)
        .take(TRIED)
        .filter_map(|step| Some((roughness(step, round)?, step)))
        .min()
        .map_or(1, |(_, step)| step)
}

/// So many steps are compared: enough to find one without a common divisor in every circle.
const TRIED: usize = 32;

/// Adds up the partial quotients of step / round: the fewer, the more evenly the multiples of the step
/// lie (Niederreiter, "Random Number Generation and Quasi-Monte Carlo Methods", chapter 3). `None` if
/// they have a common divisor.
fn roughness(step: u64, round: u64) -> Option<u64> {
    let (mut one, mut other, mut sum) = (round, step, 0u64);
    while other != 0 {
        sum = sum.saturating_add(one / other);
        (one, other) = (other, one % other);
    }
    (one == 1).then_some(sum)
}

/// Returns the point of a ticket on a circle of so many.
fn spread(ticket: u64, round: u64, step: u64) -> u64 {
    let ticket = ticket % round;
    // a set has far fewer servers than it takes to overflow
    ticket.wrapping_mul(step) % round
}

const fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
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
                // six standard deviations
                let bound = 6.0 * (f64::from(rounds) * share * (1.0 - share)).sqrt() + 1e-9;
                for count in [counts[place].0, counts[place].1] {
                    let off = (f64::from(count) - f64::from(rounds) * share).abs();
                    prop_assert!(off <= bound, "place {place}: {count} of {share}");
                }
            }
        }
    }
}
