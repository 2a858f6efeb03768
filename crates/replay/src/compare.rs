//! One recording of keys through several policies, at several capacities.

use std::fmt;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use serde::Serialize;

use crate::ours::Charge;
use crate::report::{Grid, points, share};
use crate::{Capacity, KeyTrace, Policy, ReplayError};

/// The result of one policy at one capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyFigures {
    /// The policy.
    pub policy: Policy,
    /// The capacity.
    #[serde(flatten)]
    pub capacity: Capacity,
    /// The number of requests.
    pub requests: u64,
    /// The number of requests that found their key.
    pub hits: u64,
    /// The share of hits, from 0 to 1.
    pub hit_rate: f64,
    /// The maximum that was kept at any time, in the unit of the capacity.
    pub most_kept: u64,
}

/// The results of several policies on one recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The number of requests.
    pub requests: u64,
    /// The number of distinct keys.
    pub distinct: u64,
    /// One for each policy at each capacity it applies to: by capacity, then in the order of the
    /// given policies.
    pub figures: Vec<KeyFigures>,
}

/// The difference of our hit rate to that of another policy, over several capacities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// The mean difference; above zero, ours has more hits.
    pub mean: f64,
    /// The least difference.
    pub worst: f64,
    /// The capacity of the least difference.
    #[serde(rename = "at")]
    pub capacity: Capacity,
}

impl Comparison {
    /// Replays a recording through each policy at each capacity, on all processors.
    ///
    /// With a capacity in bytes an entry counts as much as in our cache: its size and the
    /// bookkeeping. A policy that does not [apply](Policy::applies) to a capacity is skipped there.
    ///
    /// ```
    /// use callward_replay::{Capacity, Comparison, KeyTrace, Policy};
    ///
    /// let trace = KeyTrace::from_keys(["a", "b", "a", "c", "a"]);
    /// let policies = [Policy::Lru, Policy::Belady];
    /// let found = Comparison::of(&trace, &[Capacity::Entries(2)], &policies)?;
    /// assert_eq!(found.figures[0].hits, 2);
    /// # Ok::<(), callward_replay::ReplayError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReplayError::Cache`] if the cache cannot be built; [`ReplayError::NoSizes`] if a capacity
    /// is in bytes and the recording has no sizes.
    pub fn of(
        trace: &KeyTrace,
        capacities: &[Capacity],
        policies: &[Policy],
    ) -> Result<Self, ReplayError> {
        let in_bytes = |capacity: &&Capacity| matches!(capacity, Capacity::Bytes(_));
        if let Some(capacity) = capacities.iter().find(in_bytes)
            && !trace.is_sized()
            && trace.requests() > 0
        {
            return Err(ReplayError::NoSizes(*capacity));
        }
        let jobs: Vec<_> = capacities
            .iter()
            .flat_map(|capacity| policies.iter().map(|policy| (*policy, *capacity)))
            .filter(|(policy, capacity)| policy.applies(*capacity))
            .collect();
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        let mut figures = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(workers) {
            let found: Result<Vec<_>, _> = thread::scope(|scope| {
                let run = |job| scope.spawn(move || replay(trace, job));
                #[expect(
                    clippy::needless_collect,
                    reason = "all threads start before one is joined"
                )]
                let running: Vec<_> = jobs.iter().copied().map(run).collect();
                let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
                ended
                    .map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            });
            figures.extend(found?);
        }
        Ok(Self {
            requests: trace.requests(),
            distinct: trace.distinct(),
            figures,
        })
    }

    /// Returns the result of one policy at one capacity.
    #[must_use]
    pub fn find(&self, policy: Policy, capacity: Capacity) -> Option<&KeyFigures> {
        let mut figures = self.figures.iter();
        figures.find(|found| found.policy == policy && found.capacity == capacity)
    }

    /// Returns the capacities, in order.
    #[must_use]
    pub fn capacities(&self) -> Vec<Capacity> {
        let mut capacities: Vec<_> = self.figures.iter().map(|found| found.capacity).collect();
        capacities.dedup();
        capacities
    }

    fn policies(&self) -> Vec<Policy> {
        let has = |policy: &Policy| self.figures.iter().any(|found| found.policy == *policy);
        Policy::ALL.iter().copied().filter(has).collect()
    }

    /// Returns the difference of our hit rate to another policy's at one capacity.
    fn difference(&self, other: Policy, capacity: Capacity) -> Option<f64> {
        let ours = self.find(Policy::Callward, capacity)?;
        Some(ours.hit_rate - self.find(other, capacity)?.hit_rate)
    }

    /// Compares our cache with another policy over all capacities that both have results for.
    #[must_use]
    pub fn gap(&self, other: Policy) -> Option<Gap> {
        let capacities = self.capacities().into_iter();
        let differences: Vec<_> = capacities
            .filter_map(|capacity| Some((capacity, self.difference(other, capacity)?)))
            .collect();
        let sum: f64 = differences.iter().map(|(_, difference)| difference).sum();
        let lower = |one: &&(_, f64), two: &&(_, f64)| one.1.total_cmp(&two.1);
        let (capacity, worst) = *differences.iter().min_by(lower)?;
        Some(Gap {
            mean: sum / differences.len() as f64,
            worst,
            capacity,
        })
    }

    /// Returns a row for each capacity: the hit rate of each policy in per cent, and the
    /// differences of ours to LRU and to the optimum in points.
    pub fn grid(&self) -> Grid {
        let policies = self.policies();
        let gaps: Vec<_> = [(Policy::Lru, "to lru"), (Policy::Belady, "to belady")]
            .into_iter()
            .filter(|(policy, _)| self.gap(*policy).is_some())
            .collect();
        let mut headings = vec!["capacity"];
        headings.extend(policies.iter().map(|policy| policy.as_str()));
        headings.extend(gaps.iter().map(|(_, heading)| *heading));
        let mut grid = Grid::new(&headings);
        for capacity in self.capacities() {
            let mut row = vec![capacity.to_string()];
            row.extend(policies.iter().map(|policy| {
                let rate = self.find(*policy, capacity).map(|found| found.hit_rate);
                rate.map_or_else(String::new, |rate| format!("{:.2}", rate * 100.0))
            }));
            row.extend(gaps.iter().map(|(policy, _)| {
                self.difference(*policy, capacity)
                    .map_or_else(String::new, points)
            }));
            grid.rows.push(row);
        }
        grid
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

fn replay(
    trace: &KeyTrace,
    (policy, capacity): (Policy, Capacity),
) -> Result<KeyFigures, ReplayError> {
    let mut simulator = policy.build(capacity, trace)?;
    let charge = Charge::measure()?;
    let (mut hits, mut most_kept) = (0, 0);
    for (key, size) in trace.iter() {
        let size = match capacity {
            Capacity::Entries(_) => 1,
            Capacity::Bytes(_) => charge.of(size),
        };
        hits += u64::from(simulator.access(key, size));
        most_kept = most_kept.max(simulator.weight());
    }
    Ok(KeyFigures {
        policy,
        capacity,
        requests: trace.requests(),
        hits,
        hit_rate: share(hits, trace.requests()),
        most_kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hit rates of LRU, ours and the optimum: at capacity 1, then at 3.
    fn found(hit_rates: [f64; 6]) -> Comparison {
        let trace = KeyTrace::from_keys(["a", "b", "a"]);
        let capacities = [Capacity::Entries(1), Capacity::Entries(3)];
        let policies = [Policy::Lru, Policy::Callward, Policy::Belady];
        let mut found = Comparison::of(&trace, &capacities, &policies).unwrap();
        for (figures, hit_rate) in found.figures.iter_mut().zip(hit_rates) {
            figures.hit_rate = hit_rate;
        }
        found
    }

    #[test]
    fn a_row_has_the_hit_rates_and_the_differences() {
        let grid = found([0.5, 0.52, 0.9, 0.8, 0.77, 0.9]).grid();
        assert_eq!(
            grid.to_string(),
            "\
capacity  lru    callward  belady  to lru  to belady
1         50.00  52.00     90.00   +2.00   -38.00
3         80.00  77.00     90.00   -3.00   -13.00
"
        );
    }

    #[test]
    fn the_gap_is_the_mean_and_the_worst_difference() {
        let found = found([0.5, 0.52, 0.9, 0.8, 0.77, 0.9]);
        let gap = found.gap(Policy::Lru).unwrap();
        assert_eq!(
            gap.to_string(),
            "-0.50 points on average, -3.00 at worst (capacity 3)"
        );
        assert_eq!(found.gap(Policy::Fifo), None);
    }
}
