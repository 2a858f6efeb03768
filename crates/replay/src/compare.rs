//! One recording through several policies, at several capacities.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use crate::ours::Charge;
use crate::report::share;
use crate::{Capacity, KeyTrace, Policy, ReplayError};

/// What one policy made of a recording at one capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyFigures {
    /// The policy.
    pub policy: Policy,
    /// How much it was allowed to keep.
    #[serde(flatten)]
    pub capacity: Capacity,
    /// How many requests there were.
    pub requests: u64,
    /// How many of them were answered from what was kept.
    pub hits: u64,
    /// The share of hits, from 0 to 1.
    pub hit_rate: f64,
    /// The most that was kept at any time, in the unit of the capacity.
    pub most_kept: u64,
}

/// What several policies made of a recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// How many requests there were.
    pub requests: u64,
    /// For how many different keys.
    pub distinct: u64,
    /// One for each policy at each capacity it applies to: by capacity, then as the policies were
    /// given.
    pub figures: Vec<KeyFigures>,
}

/// Requests between two signs of life.
const STEP: usize = 1 << 16;

impl Comparison {
    /// Replays a recording through each policy at each capacity, on all processors. `progress` is
    /// told how many requests are done, and of how many in all.
    ///
    /// In bytes, an entry is charged what our cache charges for it: its size and what is kept about
    /// it. A policy that does not [apply](Policy::applies) to a capacity is left out there.
    ///
    /// ```
    /// use callward_replay::{Capacity, Comparison, KeyTrace, Policy};
    ///
    /// let trace = KeyTrace::from_keys(["a", "b", "a", "c", "a"]);
    /// let policies = [Policy::Lru, Policy::Belady];
    /// let found = Comparison::of(&trace, &[Capacity::Entries(2)], &policies, &|_, _| ())?;
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
        progress: &(dyn Fn(u64, u64) + Sync),
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
        let all = trace.requests().saturating_mul(jobs.len() as u64);
        let done = AtomicU64::new(0);
        let step = |requests: u64| {
            let done = done.fetch_add(requests, Ordering::Relaxed) + requests;
            progress(done, all);
        };
        Ok(Self {
            requests: trace.requests(),
            distinct: trace.distinct(),
            figures: on_all_processors(&jobs, |(policy, capacity)| {
                replay(trace, *policy, *capacity, &step)
            })?,
        })
    }

    /// Returns what one policy made of it at one capacity.
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

    /// Returns the policies, in order.
    #[must_use]
    pub fn policies(&self) -> Vec<Policy> {
        let mut policies = Vec::new();
        for found in &self.figures {
            if !policies.contains(&found.policy) {
                policies.push(found.policy);
            }
        }
        policies
    }

    /// Returns by how much the hit rate of our cache is above another policy's, at each capacity
    /// both were tried at.
    #[must_use]
    pub fn against(&self, other: Policy) -> Vec<(Capacity, f64)> {
        let difference = |capacity| {
            let ours = self.find(Policy::Callward, capacity)?;
            let other = self.find(other, capacity)?;
            Some((capacity, ours.hit_rate - other.hit_rate))
        };
        self.capacities()
            .into_iter()
            .filter_map(difference)
            .collect()
    }
}

fn replay(
    trace: &KeyTrace,
    policy: Policy,
    capacity: Capacity,
    step: &dyn Fn(u64),
) -> Result<KeyFigures, ReplayError> {
    let mut simulator = policy.build(capacity, trace)?;
    let charge = Charge::ask()?;
    let (mut hits, mut most_kept) = (0, 0);
    let mut since = 0;
    for (key, size) in trace.iter() {
        let size = match capacity {
            Capacity::Entries(_) => 1,
            Capacity::Bytes(_) => charge.of(size),
        };
        hits += u64::from(simulator.access(key, size));
        most_kept = most_kept.max(simulator.weight());
        since += 1;
        if since == STEP {
            step(since as u64);
            since = 0;
        }
    }
    step(since as u64);
    Ok(KeyFigures {
        policy,
        capacity,
        requests: trace.requests(),
        hits,
        hit_rate: share(hits, trace.requests()),
        most_kept,
    })
}

/// Does all jobs, and returns what came of them in their order.
fn on_all_processors<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, ReplayError> + Sync,
) -> Result<Vec<R>, ReplayError> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(place) else {
                return done;
            };
            done.push((place, work(job)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let mut done: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = (1..workers.min(jobs.len()))
            .map(|_| scope.spawn(worker))
            .collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(its) => done.extend(its),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
