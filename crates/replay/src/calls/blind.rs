//! The policies that our cache is compared with. Each sees one call after another.

use std::collections::HashMap;
use std::time::Duration;

use super::Options;
use super::tally::{Did, Facts, Figures, Kept, Tally};
use crate::Capacity;
use crate::policies::{Queued, S3Fifo, Simulator, WTinyLfu};

/// One call as a policy sees it.
pub(crate) struct Seen<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) world: u128,
    /// The plan has an effect.
    pub(crate) writes: bool,
    pub(crate) now: Duration,
    /// What the result counts against the capacity: its size as our cache weighs it, or 1.
    pub(crate) weight: u64,
}

impl Seen<'_> {
    /// Returns the result to store; `None` for a failure.
    fn result(&self) -> Option<Kept> {
        (!self.facts.error).then_some(self.facts.result)
    }
}

trait Policy {
    fn see(&mut self, call: &Seen<'_>) -> Did;

    /// Returns the bytes of all kept results.
    fn bytes(&self) -> u64;
}

/// All compared policies, each with its figures.
pub(crate) struct Compared(Vec<(Tally, Box<dyn Policy>)>);

/// Assumed size of an entry, for a policy that needs the number of entries.
const TYPICAL_BYTES: u64 = 1_536;

impl Compared {
    pub(crate) fn new(options: &Options) -> Self {
        let (capacity, ttl) = (options.capacity.amount(), options.ttl);
        let entries = match options.capacity {
            Capacity::Entries(entries) => entries,
            Capacity::Bytes(bytes) => bytes / TYPICAL_BYTES,
        };
        let policies: [(&'static str, Box<dyn Policy>); 8] = [
            ("no cache", bounded(Queued::fifo(0))),
            ("flush on any write", Box::new(Expiring::new(ttl, true))),
            ("blind, TTL", Box::new(Expiring::new(ttl, false))),
            ("blind, LRU", bounded(Queued::lru(capacity))),
            ("blind, FIFO", bounded(Queued::fifo(capacity))),
            ("blind, LFU", bounded(Queued::lfu(capacity))),
            ("blind, S3-FIFO", bounded(S3Fifo::new(capacity))),
            (
                "blind, W-TinyLFU",
                bounded(WTinyLfu::new(capacity, entries)),
            ),
        ];
        let tally = |name| Tally::new(name, options.assumed_duration);
        Self(policies.map(|(name, policy)| (tally(name), policy)).into())
    }

    /// Shows one call to all policies.
    pub(crate) fn see(&mut self, call: &Seen<'_>) {
        for (tally, policy) in &mut self.0 {
            tally.count(call.facts, policy.see(call));
        }
    }

    pub(crate) fn end(self) -> Vec<Figures> {
        let policies = self.0.into_iter();
        policies
            .map(|(tally, policy)| tally.end(policy.bytes()))
            .collect()
    }
}

/// Keeps every success for a time, without a bound. With `flushes`, it distinguishes writes: each
/// drops all results of its world.
struct Expiring {
    worlds: HashMap<u128, HashMap<u128, Entry>>,
    ttl: Duration,
    flushes: bool,
}

struct Entry {
    kept: Kept,
    ends: Duration,
    weight: u64,
}

impl Expiring {
    fn new(ttl: Duration, flushes: bool) -> Self {
        Self {
            worlds: HashMap::new(),
            ttl,
            flushes,
        }
    }
}

impl Policy for Expiring {
    fn see(&mut self, call: &Seen<'_>) -> Did {
        if self.flushes && call.writes {
            self.worlds.remove(&call.world);
            return Did::Ran;
        }
        let entries = self.worlds.entry(call.world).or_default();
        let key = call.facts.key;
        match (entries.get(&key), call.result()) {
            (Some(entry), _) if call.now < entry.ends => return Did::Hit(entry.kept),
            (_, Some(kept)) => {
                let entry = Entry {
                    kept,
                    ends: call.now.saturating_add(self.ttl),
                    weight: call.weight,
                };
                entries.insert(key, entry);
            }
            (_, None) => drop(entries.remove(&key)),
        }
        Did::Ran
    }

    fn bytes(&self) -> u64 {
        let entries = self.worlds.values().flat_map(HashMap::values);
        entries.map(|entry| entry.weight).sum()
    }
}

/// Keeps successes up to a capacity, whatever the tool does.
struct Bounded<S> {
    simulator: S,
    /// The number of each key, and the result that was stored last.
    results: HashMap<u128, (u32, Option<Kept>)>,
}

fn bounded<S: Simulator + 'static>(simulator: S) -> Box<dyn Policy> {
    Box::new(Bounded {
        simulator,
        results: HashMap::new(),
    })
}

impl<S: Simulator> Policy for Bounded<S> {
    fn see(&mut self, call: &Seen<'_>) -> Did {
        let next = u32::try_from(self.results.len()).unwrap_or(u32::MAX);
        let stored = self.results.entry(call.facts.key).or_insert((next, None));
        let result = call.result();
        if stored.1.is_none() && result.is_none() {
            // a simulator stores every key that it sees, and a failure is not stored
            return Did::Ran;
        }
        // after a failure, the entry of an evicted result stays until the next request
        if self.simulator.access(stored.0, call.weight)
            && let Some(kept) = stored.1
        {
            return Did::Hit(kept);
        }
        stored.1 = result;
        Did::Ran
    }

    fn bytes(&self) -> u64 {
        self.simulator.weight()
    }
}
