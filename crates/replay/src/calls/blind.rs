//! What our cache is compared with: each sees one call after the other.

use std::collections::HashMap;
use std::time::Duration;

use super::Options;
use super::tally::{Did, Facts, Figures, Kept, Tally};
use crate::Capacity;
use crate::policies::{Fifo, Lfu, Lru, S3Fifo, Simulator, WTinyLfu};

/// One call as a policy sees it.
pub(crate) struct Seen<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) world: u128,
    /// The plan says that the call may change something.
    pub(crate) writes: bool,
    pub(crate) now: Duration,
    /// The number of the key, from 0.
    pub(crate) number: Option<u32>,
    /// What the result weighs.
    pub(crate) weight: u64,
}

impl Seen<'_> {
    /// What would be kept of the call; nothing of a failure.
    fn result(&self) -> Option<Kept> {
        (!self.facts.error && self.facts.answered).then_some(Kept {
            digest: self.facts.digest,
            cost: self.facts.cost,
        })
    }
}

trait Policy {
    fn see(&mut self, call: &Seen<'_>) -> Did;

    /// Returns what is kept, in bytes.
    fn bytes(&self) -> u64;
}

/// All policies ours is compared with, each with its figures.
pub(crate) struct Compared {
    policies: Vec<(Tally, Box<dyn Policy>)>,
    numbers: HashMap<u128, u32>,
    capacity: Capacity,
}

impl Compared {
    pub(crate) fn new(options: &Options) -> Self {
        let (room, ttl) = (options.capacity.amount(), options.ttl);
        let entries = match options.capacity {
            Capacity::Entries(entries) => entries,
            Capacity::Bytes(bytes) => bytes / USUAL_BYTES,
        };
        let policies: [(&'static str, Box<dyn Policy>); 8] = [
            ("no cache", Box::new(NoCache)),
            ("flush on any write", Box::new(FlushOnWrite::new(ttl))),
            ("blind, TTL", Box::new(Ttl::new(ttl))),
            ("blind, LRU", Box::new(Bounded::new(Lru::new(room)))),
            ("blind, FIFO", Box::new(Bounded::new(Fifo::new(room)))),
            ("blind, LFU", Box::new(Bounded::new(Lfu::new(room)))),
            ("blind, S3-FIFO", Box::new(Bounded::new(S3Fifo::new(room)))),
            (
                "blind, W-TinyLFU",
                Box::new(Bounded::new(WTinyLfu::new(room, entries))),
            ),
        ];
        let tally = |name| Tally::new(name, options.assumed_duration);
        Self {
            policies: policies
                .into_iter()
                .map(|(name, policy)| (tally(name), policy))
                .collect(),
            numbers: HashMap::new(),
            capacity: options.capacity,
        }
    }

    /// Shows all of them one call. `weight` is what the result weighs in our own cache.
    pub(crate) fn see(
        &mut self,
        facts: &Facts,
        world: u128,
        writes: bool,
        now: Duration,
        weight: u64,
    ) {
        let next = u32::try_from(self.numbers.len()).ok();
        let number = match self.numbers.get(&facts.key) {
            Some(number) => Some(*number),
            None => next.inspect(|next| {
                self.numbers.insert(facts.key, *next);
            }),
        };
        let call = Seen {
            facts,
            world,
            writes,
            now,
            number,
            weight: match self.capacity {
                Capacity::Entries(_) => 1,
                Capacity::Bytes(_) => weight,
            },
        };
        for (tally, policy) in &mut self.policies {
            tally.count(facts, policy.see(&call));
        }
    }

    pub(crate) fn end(self) -> Vec<Figures> {
        self.policies
            .into_iter()
            .map(|(tally, policy)| tally.end(policy.bytes()))
            .collect()
    }
}

/// What an entry is taken to weigh where a policy must guess how many there will be.
const USUAL_BYTES: u64 = 1_536;

/// Runs every call.
struct NoCache;

impl Policy for NoCache {
    fn see(&mut self, _: &Seen<'_>) -> Did {
        Did::Ran
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Results by key, each with an end.
#[derive(Default)]
struct Entries(HashMap<u128, Entry>);

struct Entry {
    kept: Kept,
    ends: Duration,
    weight: u64,
}

impl Entries {
    fn see(&mut self, call: &Seen<'_>, ttl: Duration) -> Did {
        let key = call.facts.key;
        if let Some(entry) = self.0.get(&key)
            && call.now < entry.ends
        {
            return Did::Hit(entry.kept);
        }
        match call.result() {
            Some(kept) => {
                let entry = Entry {
                    kept,
                    ends: call.now.saturating_add(ttl),
                    weight: call.weight,
                };
                self.0.insert(key, entry);
            }
            None => {
                self.0.remove(&key);
            }
        }
        Did::Ran
    }

    fn bytes(&self) -> u64 {
        self.0.values().map(|entry| entry.weight).sum()
    }
}

/// Knows reads from writes, and forgets all of a world when anything is written to it.
struct FlushOnWrite {
    worlds: HashMap<u128, Entries>,
    ttl: Duration,
}

impl FlushOnWrite {
    fn new(ttl: Duration) -> Self {
        Self {
            worlds: HashMap::new(),
            ttl,
        }
    }
}

impl Policy for FlushOnWrite {
    fn see(&mut self, call: &Seen<'_>) -> Did {
        if call.writes {
            self.worlds.remove(&call.world);
            return Did::Ran;
        }
        self.worlds
            .entry(call.world)
            .or_default()
            .see(call, self.ttl)
    }

    fn bytes(&self) -> u64 {
        self.worlds.values().map(Entries::bytes).sum()
    }
}

/// Keeps every success for a time, whatever the tool does.
struct Ttl {
    entries: Entries,
    ttl: Duration,
}

impl Ttl {
    fn new(ttl: Duration) -> Self {
        Self {
            entries: Entries::default(),
            ttl,
        }
    }
}

impl Policy for Ttl {
    fn see(&mut self, call: &Seen<'_>) -> Did {
        self.entries.see(call, self.ttl)
    }

    fn bytes(&self) -> u64 {
        self.entries.bytes()
    }
}

/// Keeps as many successes as there is room for, whatever the tool does.
struct Bounded<S> {
    simulator: S,
    /// By the key's number: whose result was stored last.
    results: Vec<Option<Kept>>,
}

impl<S> Bounded<S> {
    const fn new(simulator: S) -> Self {
        Self {
            simulator,
            results: Vec::new(),
        }
    }
}

impl<S: Simulator> Policy for Bounded<S> {
    fn see(&mut self, call: &Seen<'_>) -> Did {
        let Some(number) = call.number else {
            return Did::Ran;
        };
        let at = number as usize;
        if self.results.len() <= at {
            self.results.resize(at + 1, None);
        }
        let Some(slot) = self.results.get_mut(at) else {
            return Did::Ran;
        };
        let result = call.result();
        if slot.is_none() && result.is_none() {
            // never kept, and not kept now: a simulator stores what it is asked for
            return Did::Ran;
        }
        // a failure in the place of what was thrown out takes room until the key is asked for again
        if self.simulator.access(number, call.weight)
            && let Some(kept) = *slot
        {
            return Did::Hit(kept);
        }
        *slot = result;
        Did::Ran
    }

    fn bytes(&self) -> u64 {
        self.simulator.weight()
    }
}
