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
mod tests;
