//! How far the figures depend on which servers happen to be in the corpus.
//!
//! Tools of one server resemble each other, so it is servers that are drawn, not tools: as many as
//! there are, with replacement, a thousand times, and the figures are counted each time. The middle
//! nine tenths of what comes out are the interval. It shows what other servers *of the same kind*
//! would give. It does not show what is lost because rules were written with these in view: only
//! servers that were not examined show that.

use std::collections::BTreeMap;

use callward_core::Field;

use super::figures::{Counts, HINTS, OfServer, Score, mean, share};

/// How often the servers are drawn.
const DRAWS: usize = 1000;
/// Each run draws the same.
const SEED: u64 = 1;

/// Between these lie nine of ten draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// One of twenty draws gives less.
    pub low: f64,
    /// One of twenty draws gives more.
    pub high: f64,
}

/// The intervals of all figures; a figure that half of the draws did not give has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intervals {
    /// F1 over all tools.
    pub f1: BTreeMap<Field, Interval>,
    /// The mean F1 over servers.
    pub macro_f1: BTreeMap<Field, Interval>,
    /// The share of writes that came out as read-only.
    pub unsafe_share: Option<Interval>,
}

impl Score {
    /// Draws servers with replacement, and returns between which values the figures move.
    pub fn intervals(&self) -> Intervals {
        let servers: Vec<&OfServer> = self.servers.values().collect();
        if servers.is_empty() {
            return Intervals::default();
        }
        let mut random = fastrand::Rng::with_seed(SEED);
        let (mut f1, mut macro_f1) = (BTreeMap::new(), BTreeMap::new());
        let mut unsafe_shares = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let drawn: Vec<&OfServer> = (0..servers.len())
                .filter_map(|_| servers.get(random.usize(..servers.len())).copied())
                .collect();
            for hint in HINTS {
                let counts = || drawn.iter().filter_map(|server| server.hints.get(&hint));
                let sum = counts().fold(Counts::default(), |sum, counts| sum.and(*counts));
                let figures = [
                    (&mut f1, sum.f1()),
                    (&mut macro_f1, mean(counts().filter_map(Counts::f1))),
                ];
                for (all, figure) in figures {
                    all.entry(hint).or_insert_with(Vec::new).extend(figure);
                }
            }
            let harmful = drawn.iter().map(|server| server.harmful).sum();
            let writes = drawn.iter().map(|server| server.writes).sum();
            unsafe_shares.extend(share(harmful, writes));
        }
        let of_each = |all: BTreeMap<Field, Vec<f64>>| {
            let middles = all
                .into_iter()
                .map(|(hint, drawn)| Some((hint, middle(drawn)?)));
            middles.flatten().collect()
        };
        Intervals {
            f1: of_each(f1),
            macro_f1: of_each(macro_f1),
            unsafe_share: middle(unsafe_shares),
        }
    }
}

/// The middle nine tenths of what was drawn.
fn middle(mut drawn: Vec<f64>) -> Option<Interval> {
    drawn.sort_by(f64::total_cmp);
    let last = drawn.len().checked_sub(1)?;
    let tail = drawn.len() / 20;
    (drawn.len() * 2 > DRAWS).then_some(())?;
    Some(Interval {
        low: *drawn.get(tail)?,
        high: *drawn.get(last - tail)?,
    })
}

#[cfg(test)]
mod tests {
    use callward_core::RuleSet;

    use super::*;
    use crate::score::{read, score};

    fn corpus(servers: usize, wrong: usize) -> Score {
        let lines: String = (0..servers)
            .map(|at| {
                let read = at >= wrong;
                format!(
                    "{{\"server\":\"s{at}\",\"tool\":\"get_x\",\"declared\":{{\"readOnlyHint\":{read}}}}}\n"
                )
            })
            .collect();
        score(&read(&lines).unwrap(), RuleSet::Standard)
    }

    #[test]
    fn a_figure_that_all_servers_share_does_not_move() {
        let intervals = corpus(20, 0).intervals();
        let only = Interval {
            low: 1.0,
            high: 1.0,
        };
        assert_eq!(intervals.f1.get(&Field::ReadOnly), Some(&only));
        assert_eq!(intervals.macro_f1.get(&Field::ReadOnly), Some(&only));
        // Nothing writes, so there is no share.
        assert_eq!(intervals.unsafe_share, None);
        assert_eq!(intervals.f1.get(&Field::OpenWorld), None);
    }

    #[test]
    fn a_figure_that_differs_by_server_moves_about_its_value() {
        let score = corpus(40, 20);
        let value = score.total[&Field::ReadOnly].f1().unwrap();
        let interval = score.intervals().f1[&Field::ReadOnly];
        assert!(interval.low < value - 0.05 && value + 0.05 < interval.high);
        assert!(interval.low > 0.4 && interval.high < 0.9, "{interval:?}");
        assert_eq!(score.intervals(), score.intervals());
    }
}
