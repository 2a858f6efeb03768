//! A comparison as people read it.

use std::fmt;

use serde::Serialize;

use crate::report::{Cell, Grid, Mark, points};
use crate::{Capacity, Comparison, Policy};

/// How the hit rate of our cache compares with another policy's, over several capacities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// The mean of the differences; above zero, ours has more hits.
    pub mean: f64,
    /// The least of the differences.
    pub worst: f64,
    /// Where that one is.
    #[serde(rename = "at")]
    pub capacity: Capacity,
}

/// Further below least recently used than this is wrong.
const TOO_FAR: f64 = -0.01;

impl Comparison {
    /// Compares our cache with another policy over all capacities both were tried at; nothing if
    /// there is none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "there are a few capacities")]
    pub fn gap(&self, other: Policy) -> Option<Gap> {
        let differences = self.against(other);
        let sum: f64 = differences.iter().map(|(_, difference)| difference).sum();
        let lower = |one: &&(_, f64), two: &&(_, f64)| one.1.total_cmp(&two.1);
        let (capacity, worst) = *differences.iter().min_by(lower)?;
        Some(Gap {
            mean: sum / differences.len() as f64,
            worst,
            capacity,
        })
    }

    /// Returns a row for each capacity: the hit rate of each policy in per cent, then by how many
    /// points ours is above least recently used, and above the optimum.
    #[must_use]
    pub fn grid(&self) -> Grid {
        let policies = self.policies();
        let ours = policies.contains(&Policy::Callward);
        let gaps: Vec<_> = [(Policy::Lru, "to lru"), (Policy::Belady, "to belady")]
            .into_iter()
            .filter(|(policy, _)| ours && policies.contains(policy))
            .collect();
        let mut headings = vec!["capacity"];
        headings.extend(policies.iter().map(|policy| policy.as_str()));
        headings.extend(gaps.iter().map(|(_, heading)| *heading));
        let mut grid = Grid::new(&headings);
        for capacity in self.capacities() {
            let mut row = vec![Cell::plain(capacity)];
            row.extend(policies.iter().map(|policy| {
                let found = self.find(*policy, capacity);
                Cell::plain(found.map_or_else(String::new, |found| {
                    format!("{:.2}", found.hit_rate * 100.0)
                }))
            }));
            row.extend(gaps.iter().map(|(policy, _)| {
                let differences = self.against(*policy);
                let found = differences.iter().find(|(at, _)| *at == capacity);
                found.map_or_else(
                    || Cell::plain(""),
                    |(_, difference)| Cell::marked(points(*difference), mark(*policy, *difference)),
                )
            }));
            grid.row(row);
        }
        grid
    }
}

/// Nothing but the optimum is expected to be above ours.
fn mark(other: Policy, difference: f64) -> Mark {
    match other {
        Policy::Belady => Mark::Plain,
        _ if difference < TOO_FAR => Mark::Bad,
        _ if difference < 0.0 => Mark::Doubtful,
        _ => Mark::Good,
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, worst) = (points(self.mean), points(self.worst));
        write!(
            f,
            "{mean} points on average, {worst} at worst (capacity {})",
            self.capacity
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyTrace;

    /// The hit rates of least recently used, ours and the optimum: at capacity 1, then at 3.
    fn found(hit_rates: [f64; 6]) -> Comparison {
        let trace = KeyTrace::from_keys(["a", "b", "a"]);
        let capacities = [Capacity::Entries(1), Capacity::Entries(3)];
        let policies = [Policy::Lru, Policy::Callward, Policy::Belady];
        let mut found = Comparison::of(&trace, &capacities, &policies, &|_, _| ()).unwrap();
        for (figures, hit_rate) in found.figures.iter_mut().zip(hit_rates) {
            figures.hit_rate = hit_rate;
        }
        found
    }

    #[test]
    fn a_row_tells_the_hit_rates_and_the_differences() {
        let grid = found([0.5, 0.52, 0.9, 0.8, 0.77, 0.9]).grid();
        assert_eq!(
            grid.to_string(),
            "\
capacity  lru    callward  belady  to lru  to belady
1         50.00  52.00     90.00   +2.00   -38.00
3         80.00  77.00     90.00   -3.00   -13.00
"
        );
        let marks: Vec<_> = grid.rows().iter().map(|row| row[4].mark).collect();
        assert_eq!(marks, [Mark::Good, Mark::Bad]);
    }

    #[test]
    fn the_gap_is_the_mean_and_the_worst() {
        let found = found([0.5, 0.52, 0.9, 0.8, 0.77, 0.9]);
        let gap = found.gap(Policy::Lru).unwrap();
        assert_eq!(
            gap.to_string(),
            "-0.50 points on average, -3.00 at worst (capacity 3)"
        );
        assert_eq!(found.gap(Policy::Fifo), None);
    }
}
