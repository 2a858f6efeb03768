//! Requests made from a seed.

use crate::KeyTrace;
use crate::random::{Random, Zipf};

/// A pattern of requests that caches meet, made from a seed: the same seed gives the same requests,
/// on every machine.
///
/// ```
/// use callward_replay::Workload;
///
/// let trace = Workload::Scans.keys(10_000, 1);
/// assert_eq!(trace.requests(), 10_000);
/// assert_eq!(trace, Workload::Scans.keys(10_000, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Workload {
    /// Popular keys and many that are not, unchanged all the time. The exponent says how unequal.
    Zipf(f64),
    /// Popular keys whose popularity moves on: what was asked for most is forgotten in the end.
    Drift,
    /// Popular keys, and now and then a long run of keys that never come again.
    Scans,
    /// The same keys round and round, a little more of them each time.
    Loops,
    /// All of that in turn.
    Mixed,
    /// Agents at work, several at a time: each looks something up, goes into a few items of it,
    /// comes back to what it just read, and is gone.
    Sessions,
}

/// Different keys of the popular kind.
const POPULAR: u32 = 20_000;
/// Keys of one run that never come again: some times what a small cache holds.
const SCAN: u64 = 2_000;
/// Agents at work at a time.
const AGENTS: usize = 8;

impl Workload {
    /// All kinds, Zipf with four exponents.
    pub const ALL: [Self; 9] = [
        Self::Zipf(0.6),
        Self::Zipf(0.8),
        Self::Zipf(1.0),
        Self::Zipf(1.2),
        Self::Drift,
        Self::Scans,
        Self::Loops,
        Self::Mixed,
        Self::Sessions,
    ];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Zipf(exponent) => format!("zipf-{exponent:.1}"),
            Self::Drift => "drift".into(),
            Self::Scans => "scans".into(),
            Self::Loops => "loops".into(),
            Self::Mixed => "mixed".into(),
            Self::Sessions => "sessions".into(),
        }
    }

    /// Makes so many requests.
    #[must_use]
    pub fn keys(self, requests: usize, seed: u64) -> KeyTrace {
        let keys: Vec<u64> = match self {
            Self::Zipf(exponent) => zipf(exponent, requests, seed),
            Self::Drift => drift(requests, seed),
            Self::Scans => scans(requests, seed),
            Self::Loops => loops(requests),
            Self::Mixed => mixed(requests, seed),
            Self::Sessions => sessions(requests, seed),
        };
        KeyTrace::from_keys(keys.iter().map(|key| key.to_le_bytes()))
    }
}

/// The kinds of keys are apart from each other by their upper bits.
const fn kind(kind: u64) -> u64 {
    kind << 40
}

fn zipf(exponent: f64, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut random) = (Zipf::new(POPULAR, exponent), Random::new(seed));
    let draw = || u64::from(zipf.draw(&mut random));
    std::iter::repeat_with(draw).take(requests).collect()
}

fn drift(requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut random) = (Zipf::new(POPULAR, 0.9), Random::new(seed));
    (0..requests as u64)
        .map(|now| now / 50 + u64::from(zipf.draw(&mut random)))
        .collect()
}

fn scans(requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut random) = (Zipf::new(POPULAR, 0.9), Random::new(seed));
    let mut scanned = 0;
    (0..requests as u64)
        .map(|now| {
            // a third of all requests
            if now % (3 * SCAN) < SCAN {
                scanned += 1;
                kind(1) + scanned
            } else {
                u64::from(zipf.draw(&mut random))
            }
        })
        .collect()
}

fn loops(requests: usize) -> Vec<u64> {
    let mut length = 300;
    let mut place = 0;
    let mut rounds = 0;
    (0..requests)
        .map(|_| {
            let key = kind(2) + place;
            place += 1;
            if place == length {
                place = 0;
                rounds += 1;
                if rounds % 5 == 0 {
                    length += length / 2;
                }
            }
            key
        })
        .collect()
}

fn mixed(requests: usize, seed: u64) -> Vec<u64> {
    let part = requests / 8 + 1;
    let mut parts: Vec<_> = (seed..seed + 2)
        .flat_map(|seed| {
            [
                zipf(1.0, part, seed),
                scans(part, seed),
                loops(part),
                drift(part, seed),
            ]
        })
        .flatten()
        .collect();
    parts.truncate(requests);
    parts
}

/// One agent's work.
#[derive(Debug, Default)]
struct Session {
    left: u64,
    /// What it read, the latest last.
    read: Vec<u64>,
}

fn sessions(requests: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let topics = Zipf::new(3_000, 0.8);
    let mut agents: Vec<Session> = Vec::new();
    agents.resize_with(AGENTS, Session::default);
    let mut keys = Vec::with_capacity(requests);
    while keys.len() < requests {
        let agent = usize::try_from(random.below(AGENTS as u64)).unwrap_or(0);
        let Some(agent) = agents.get_mut(agent) else {
            break;
        };
        if agent.left == 0 {
            agent.left = 8 + random.below(25);
            agent.read.clear();
            // where everybody begins: what there is, and who I am
            let start = kind(3) + random.below(4);
            agent.read.push(start);
            keys.push(start);
            continue;
        }
        agent.left -= 1;
        let key = next_of(&agent.read, &topics, &mut random);
        agent.read.push(key);
        keys.push(key);
    }
    keys
}

/// What an agent reads after all that: something of before, an item of the topic it is in, or
/// another topic.
fn next_of(read: &[u64], topics: &Zipf, random: &mut Random) -> u64 {
    let chance = random.below(100);
    let last = read.last().copied().unwrap_or_default();
    let is_topic = |key: u64| key >> 40 == 4;
    if chance < 15 {
        let back = random.below(read.len().min(6) as u64);
        let place = usize::try_from(back).ok();
        let before = place.and_then(|place| read.iter().rev().nth(place));
        return before.copied().unwrap_or(last);
    }
    if chance < 70 && (is_topic(last) || last >> 40 == 5) {
        // ten items of each topic, the first ones more often
        let topic = if is_topic(last) {
            last - kind(4)
        } else {
            (last - kind(5)) / 10
        };
        let item = random.below(10).min(random.below(10));
        return kind(5) + topic * 10 + item;
    }
    kind(4) + u64::from(topics.draw(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_as_long_as_asked_for_and_always_the_same() {
        for workload in Workload::ALL {
            let name = workload.name();
            for requests in [0, 1, 5000] {
                let trace = workload.keys(requests, 3);
                assert_eq!(trace.requests(), requests as u64, "{name}");
                assert_eq!(trace, workload.keys(requests, 3), "{name}");
            }
        }
    }

    #[test]
    fn another_seed_makes_other_requests() {
        for workload in Workload::ALL {
            let other = workload.keys(5000, 3) != workload.keys(5000, 4);
            // a loop goes round in one way only
            assert_eq!(other, workload != Workload::Loops, "{}", workload.name());
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names = Workload::ALL.map(Workload::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Workload::ALL.len());
    }
}
