//! The test of one bucket: is P(different) at most the odds?

use serde::{Deserialize, Serialize};

/// Evidence for a share of differences below the odds is enough from here on: 1 / 5 %.
const MIN_EVIDENCE: f64 = 20.0;
/// Weight halves in this many seconds: one day.
const HALF_LIFE: f64 = 86_400.0;
/// A weight that ageing has brought below this counts as zero.
const NEGLIGIBLE: f64 = 1e-4;
/// No sum of weights is larger, so that no logarithm overflows.
const MAX_SUM: f64 = 1e12;

/// Weighted observations: equal and different ones.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "(f64, f64)", try_from = "(f64, f64)")]
pub(crate) struct Tally {
    pub(crate) equal: f64,
    pub(crate) different: f64,
}

impl From<Tally> for (f64, f64) {
    fn from(tally: Tally) -> Self {
        (tally.equal, tally.different)
    }
}

impl TryFrom<(f64, f64)> for Tally {
    type Error = &'static str;

    fn try_from((equal, different): (f64, f64)) -> Result<Self, Self::Error> {
        let is_weight = |sum: f64| sum.is_finite() && sum >= 0.0;
        if is_weight(equal) && is_weight(different) {
            let (equal, different) = (equal.min(MAX_SUM), different.min(MAX_SUM));
            Ok(Self { equal, different })
        } else {
            Err("a weight is negative or not finite")
        }
    }
}

impl Tally {
    /// Multiplies both by a factor of at most 1: see [`ageing`].
    pub(crate) fn age(&mut self, factor: f64) {
        self.equal = aged(self.equal, factor);
        self.different = aged(self.different, factor);
    }

    /// Adds an observation of this weight that was equal.
    pub(crate) fn add_equal(&mut self, weight: f64) {
        self.equal = (self.equal + weight).min(MAX_SUM);
    }

    /// Removes equal observations of this weight.
    pub(crate) fn remove_equal(&mut self, weight: f64) {
        self.equal = (self.equal - weight).max(0.0);
    }

    /// Adds one observation that was different.
    pub(crate) fn add_different(&mut self) {
        self.different = (self.different + 1.0).min(MAX_SUM);
    }
}

/// What weights are multiplied by after this many seconds.
pub(crate) fn ageing(seconds: f64) -> f64 {
    (-seconds.max(0.0) / HALF_LIFE).exp2()
}

/// Multiplies a weight, and drops what is left if that is negligible.
pub(crate) fn aged(weight: f64, factor: f64) -> f64 {
    let weight = weight * factor;
    if weight >= NEGLIGIBLE { weight } else { 0.0 }
}

/// The e-process for one choice of odds. The mixture is finite, so that it is a sum and no
/// integral: half of it is for tools that never change, and the rest lets a bucket pass in spite of
/// differences.
#[derive(Debug)]
pub(crate) struct Test {
    alternatives: [Alternative; 4],
    /// The fewest equal observations, without a different one, with which a bucket passes; infinite
    /// if none can.
    pub(crate) fewest: f64,
}

/// One p below the odds, in logarithms.
#[derive(Debug, Clone, Copy)]
struct Alternative {
    weight: f64,
    /// (1 - p) / (1 - odds)
    equal: f64,
    /// p / odds
    different: f64,
}

/// Weights of the mixture, and the alternatives as parts of the odds.
const MIXTURE: [(f64, f64); 4] = [
    (1.0 / 2.0, 0.0),
    (1.0 / 6.0, 1.0 / 8.0),
    (1.0 / 6.0, 1.0 / 4.0),
    (1.0 / 6.0, 1.0 / 2.0),
];

impl Test {
    /// Takes the odds, 0 to 1. Odds above a half count as a half; below 1e-9, or if they are not a
    /// number, nothing ever passes.
    pub(crate) fn new(odds: f64) -> Self {
        let usable = odds >= 1e-9;
        let odds = if usable { odds.min(0.5) } else { 0.5 };
        let mut test = Self {
            alternatives: MIXTURE.map(|(weight, part)| Alternative {
                weight: weight.ln(),
                equal: (-part * odds).ln_1p() - (-odds).ln_1p(),
                different: part.ln(),
            }),
            fewest: f64::INFINITY,
        };
        if usable {
            test.fewest = test.search();
        }
        test
    }

    /// Returns what one key contributes at most to what is known of its tool: a tenth of
    /// [`fewest`](Self::fewest).
    pub(crate) fn most_of_one_key(&self) -> f64 {
        self.fewest / 10.0
    }

    /// Returns `true` if there is enough evidence that P(different) is at most the odds.
    pub(crate) fn passes(&self, tally: &Tally) -> bool {
        self.fewest.is_finite() && self.logarithm(tally) >= MIN_EVIDENCE.ln()
    }

    /// The logarithm of the e-process.
    fn logarithm(&self, tally: &Tally) -> f64 {
        let terms = self.alternatives.map(|alternative| {
            let different = match tally.different {
                none if none <= 0.0 => 0.0,
                weight => weight * alternative.different,
            };
            alternative.weight + tally.equal * alternative.equal + different
        });
        let largest = terms.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = terms.iter().map(|term| (term - largest).exp()).sum();
        largest + sum.ln()
    }

    fn search(&self) -> f64 {
        let enough = |equal: f64| {
            let tally = Tally {
                equal,
                different: 0.0,
            };
            self.logarithm(&tally) >= MIN_EVIDENCE.ln()
        };
        // enough at the least odds
        let (mut low, mut high) = (0.0_f64, 1e10);
        while high - low > 1.0 {
            let middle = ((low + high) / 2.0).floor();
            if enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(equal: f64, different: f64) -> Tally {
        Tally { equal, different }
    }

    fn fewest(odds: f64, different: f64) -> u32 {
        let test = Test::new(odds);
        let passes = |equal: &u32| test.passes(&tally(f64::from(*equal), different));
        (0..100_000).find(passes).unwrap()
    }

    #[test]
    fn a_bucket_passes_with_this_many_equal_observations() {
        // one test on a fixed sample would need 299: ln 0.05 / ln 0.99
        let table = [(0, 332), (1, 695), (2, 898), (3, 1094), (10, 2275)];
        for (different, equal) in table {
            assert_eq!(fewest(0.01, f64::from(different)), equal, "{different}");
        }
        for (odds, equal) in [(0.001, 3332), (0.05, 65), (0.5, 5), (1.0, 5)] {
            assert_eq!(fewest(odds, 0.0), equal, "{odds}");
            assert_eq!(Test::new(odds).fewest, f64::from(equal), "{odds}");
        }
    }

    #[test]
    fn without_usable_odds_nothing_passes() {
        for odds in [0.0, -1.0, 1e-10, f64::NAN, f64::NEG_INFINITY] {
            let test = Test::new(odds);
            assert!(!test.passes(&tally(1e12, 0.0)), "{odds}");
            assert_eq!(test.fewest, f64::INFINITY, "{odds}");
        }
    }

    /// Whether a bucket whose P(different) equals the odds ever passes within `looks` looks. A
    /// bucket only passes at an equal observation, and likelier with each, so that it is enough to
    /// look at the last one before each difference.
    fn ever_passes(test: &Test, odds: f64, looks: f64, rng: &mut fastrand::Rng) -> bool {
        let mut seen = Tally::default();
        loop {
            let run = (rng.f64().max(f64::MIN_POSITIVE).ln() / (-odds).ln_1p()).floor();
            let left = looks - seen.equal - seen.different;
            seen.add_equal(run.min(left));
            if test.passes(&seen) {
                return true;
            }
            if run >= left {
                return false;
            }
            seen.add_different();
        }
    }

    #[test]
    fn a_bucket_passes_by_chance_in_at_most_one_of_twenty_runs() {
        for (seed, odds, worlds) in [(1, 0.01, 4_000), (2, 0.05, 1_000), (3, 0.001, 4_000)] {
            let mut rng = fastrand::Rng::with_seed(seed);
            let test = Test::new(odds);
            let passed = (0..worlds)
                .filter(|_| ever_passes(&test, odds, 1e5, &mut rng))
                .count();
            println!("odds {odds}: {passed} of {worlds} pass within 100,000 looks");
            assert!(passed * 20 <= worlds, "{odds}: {passed}");
            // and the test is not just blind
            assert!(passed * 100 >= worlds, "{odds}: {passed}");
        }
    }

    #[test]
    fn with_ageing_the_chance_holds_day_by_day() {
        let (test, odds, each_day) = (Test::new(0.01), 0.01, 1_000);
        let mut rng = fastrand::Rng::with_seed(7);
        let factor = ageing(86_400.0 / f64::from(each_day));
        let (worlds, mut passed) = (1_000, [0; 3]);
        for _ in 0..worlds {
            let mut seen = Tally::default();
            for day in &mut passed {
                let mut ever = false;
                for _ in 0..each_day {
                    seen.age(factor);
                    if rng.f64() < odds {
                        seen.add_different();
                    } else {
                        seen.add_equal(1.0);
                        ever |= test.passes(&seen);
                    }
                }
                *day += u32::from(ever);
            }
        }
        println!("with ageing: {passed:?} of {worlds} pass within the first days");
        assert!(
            passed.into_iter().all(|day| day * 20 <= worlds),
            "{passed:?}"
        );
        assert!(passed[0] > 0);
    }

    proptest! {
        #[test]
        fn any_numbers_are_taken(odds: f64, equal: f64, different: f64, factor: f64) {
            let test = Test::new(odds);
            if let Ok(mut tally) = Tally::try_from((equal, different)) {
                prop_assert!(!test.logarithm(&tally).is_nan());
                tally.age(ageing(factor));
                tally.add_equal(1.0);
                tally.add_different();
                prop_assert!(!test.logarithm(&tally).is_nan());
            } else {
                prop_assert!(!(equal >= 0.0 && different >= 0.0) || equal + different == f64::INFINITY);
            }
        }

        /// The mean of each step's factor is at most 1 for every P(different) at or above the odds.
        #[test]
        fn each_step_is_a_supermartingale(
            odds in 1e-4..0.5_f64,
            excess in 0.0..1.0_f64,
            weight in 0.0..1.0_f64,
        ) {
            let p = odds + (1.0 - odds) * excess;
            for alternative in Test::new(odds).alternatives {
                let equal = (weight * alternative.equal).exp();
                let different = if weight > 0.0 { (weight * alternative.different).exp() } else { 1.0 };
                prop_assert!((1.0 - p) * equal + p * different <= 1.0 + 1e-9);
            }
        }
    }
}
