//! Generated requests.

use callward_replay::KeyTrace;

use crate::day::random::Random;

/// A pattern of requests that is typical for caches. The same seed gives the same requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Workload {
    /// Constant popularity with this exponent.
    Zipf(f64),
    /// Popularity that drifts over the keys.
    Drift,
    /// Popular keys, and long runs of unique keys.
    Scans,
    /// Loops over the same keys, longer after some rounds.
    Loops,
    /// All of the above in turn.
    Mixed,
    /// Several agents: each looks up a topic, reads items of it, and rereads.
    Sessions,
}

/// The number of popular keys.
const POPULAR: u32 = 20_000;
/// The length of a run of unique keys: several times a small cache.
const SCAN: u64 = 2_000;
/// Concurrent agents.
const AGENTS: usize = 8;

impl Workload {
    /// All kinds, Zipf with four exponents.
    pub(crate) const ALL: [Self; 9] = [
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
    pub(crate) fn name(self) -> String {
        match self {
            Self::Zipf(exponent) => format!("zipf-{exponent:.1}"),
            Self::Drift => "drift".into(),
            Self::Scans => "scans".into(),
            Self::Loops => "loops".into(),
            Self::Mixed => "mixed".into(),
            Self::Sessions => "sessions".into(),
        }
    }

    /// Generates requests.
    pub(crate) fn keys(self, requests: usize, seed: u64) -> KeyTrace {
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

/// Returns a number below `end`; 0 if that is 0.
fn below(random: &mut Random, end: u64) -> u64 {
    random.next().checked_rem(end).unwrap_or(0)
}

/// The upper bits distinguish the kinds of keys.
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

/// One session of an agent.
#[derive(Debug, Default)]
struct Session {
    left: u64,
    /// The keys it read, the latest last.
    read: Vec<u64>,
}

fn sessions(requests: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let topics = Zipf::new(3_000, 0.8);
    let mut agents: Vec<Session> = Vec::new();
    agents.resize_with(AGENTS, Session::default);
    let mut keys = Vec::with_capacity(requests);
    while keys.len() < requests {
        let agent = usize::try_from(below(&mut random, AGENTS as u64)).unwrap_or(0);
        let Some(agent) = agents.get_mut(agent) else {
            break;
        };
        if agent.left == 0 {
            agent.left = 8 + below(&mut random, 25);
            agent.read.clear();
            // every session begins with a few common keys
            let start = kind(3) + below(&mut random, 4);
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

/// Returns the next read of an agent: an earlier key, an item of its topic, or another topic.
fn next_of(read: &[u64], topics: &Zipf, random: &mut Random) -> u64 {
    let chance = below(random, 100);
    let last = read.last().copied().unwrap_or_default();
    let is_topic = |key: u64| key >> 40 == 4;
    if chance < 15 {
        let back = below(random, read.len().min(6) as u64);
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
        let item = below(random, 10).min(below(random, 10));
        return kind(5) + topic * 10 + item;
    }
    kind(4) + u64::from(topics.draw(random))
}

/// Draws 0, 1, 2… so that number `n` comes in proportion to `1 / (n + 1)^exponent`.
#[derive(Debug, Clone)]
struct Zipf {
    /// How likely it is that a number is this one or a smaller one.
    up_to: Vec<f64>,
}

impl Zipf {
    fn new(numbers: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=numbers)
            .map(|n| {
                sum += f64::from(n).powf(-exponent);
                sum
            })
            .collect();
        for share in &mut up_to {
            *share /= sum;
        }
        Self { up_to }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let share = random.share();
        let place = self.up_to.partition_point(|up_to| *up_to <= share);
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}
