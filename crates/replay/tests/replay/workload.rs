//! Generated requests, in patterns that are typical for caches.

use callward_replay::KeyTrace;

use crate::day::random::Random;

/// The number of popular keys.
const POPULAR: u32 = 20_000;
/// The length of a run of unique keys: several times a small cache.
const SCAN: u64 = 2_000;
/// Concurrent agents.
const AGENTS: u64 = 8;

/// Returns this many requests in each pattern. The same seed gives the same requests.
pub(crate) fn all(requests: usize, seed: u64) -> Vec<(&'static str, KeyTrace)> {
    let patterns = [
        ("zipf-0.6", zipf(0.6, requests, seed)),
        ("zipf-0.8", zipf(0.8, requests, seed)),
        ("zipf-1.0", zipf(1.0, requests, seed)),
        ("zipf-1.2", zipf(1.2, requests, seed)),
        ("drift", drift(requests, seed)),
        ("scans", scans(requests, seed)),
        ("loops", loops(requests)),
        ("mixed", mixed(requests, seed)),
        ("sessions", sessions(requests, seed)),
    ];
    let trace = |keys: Vec<u64>| KeyTrace::from_keys(keys.iter().map(|key| key.to_le_bytes()));
    patterns.map(|(name, keys)| (name, trace(keys))).into()
}

/// The upper bits distinguish the kinds of keys.
const fn kind(kind: u64) -> u64 {
    kind << 40
}

/// Constant popularity with this exponent.
fn zipf(exponent: f64, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut random) = (Zipf::new(POPULAR, exponent), Random::new(seed));
    let draw = || zipf.draw(&mut random);
    std::iter::repeat_with(draw).take(requests).collect()
}

/// Popularity that drifts over the keys.
fn drift(requests: usize, seed: u64) -> Vec<u64> {
    let keys = zipf(0.9, requests, seed).into_iter();
    (0..).zip(keys).map(|(now, key)| now / 50 + key).collect()
}

/// Popular keys, and long runs of unique keys: a third of all requests.
fn scans(requests: usize, seed: u64) -> Vec<u64> {
    let keys = zipf(0.9, requests, seed).into_iter();
    let is_scan = |now| now % (3 * SCAN) < SCAN;
    (0..)
        .zip(keys)
        .map(|(now, key)| if is_scan(now) { kind(1) + now } else { key })
        .collect()
}

/// Loops over the same keys, longer after some rounds.
fn loops(requests: usize) -> Vec<u64> {
    let lengths = std::iter::successors(Some(300), |length| Some(length + length / 2));
    let rounds = lengths.flat_map(|length| std::iter::repeat_n(length, 5));
    let keys = rounds.flat_map(|length| (0..length).map(|place| kind(2) + place));
    keys.take(requests).collect()
}

/// All of the above in turn.
fn mixed(requests: usize, seed: u64) -> Vec<u64> {
    let part = requests / 8 + 1;
    let parts = (seed..seed + 2).flat_map(|seed| {
        let (zipf, scans) = (zipf(1.0, part, seed), scans(part, seed));
        [zipf, scans, loops(part), drift(part, seed)]
    });
    parts.flatten().take(requests).collect()
}

/// Several agents: each looks up a topic, reads items of it, and rereads.
fn sessions(requests: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let topics = Zipf::new(3_000, 0.8);
    // for each agent the reads that are left, and what it read in its session
    let mut agents = vec![(0, Vec::new()); AGENTS as usize];
    let mut keys = Vec::with_capacity(requests);
    while keys.len() < requests {
        let (left, read) = &mut agents[(random.next() % AGENTS) as usize];
        if *left == 0 {
            *left = 8 + random.next() % 25;
            // every session begins with a few common keys
            *read = vec![kind(3) + random.next() % 4];
        } else {
            *left -= 1;
            let key = next_of(read, &topics, &mut random);
            read.push(key);
        }
        keys.extend(read.last());
    }
    keys
}

/// Returns the next read of an agent: an earlier key, an item of its topic, or another topic.
fn next_of(read: &[u64], topics: &Zipf, random: &mut Random) -> u64 {
    let chance = random.next() % 100;
    let last = read[read.len() - 1];
    if chance < 15 {
        let back = random.next() as usize % read.len().min(6);
        return read[read.len() - 1 - back];
    }
    if chance < 70 && matches!(last >> 40, 4 | 5) {
        // ten items of each topic, the first ones more often
        let topic = match last >> 40 {
            4 => last - kind(4),
            _ => (last - kind(5)) / 10,
        };
        let item = (random.next() % 10).min(random.next() % 10);
        return kind(5) + topic * 10 + item;
    }
    kind(4) + topics.draw(random)
}

/// Draws 0, 1, 2… so that number `n` comes in proportion to `1 / (n + 1)^exponent`.
struct Zipf {
    /// How likely it is that a number is this one or a smaller one.
    up_to: Vec<f64>,
}

impl Zipf {
    fn new(numbers: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=numbers).map(|n| {
            sum += f64::from(n).powf(-exponent);
            sum
        });
        let mut up_to: Vec<f64> = weights.collect();
        up_to.iter_mut().for_each(|share| *share /= sum);
        Self { up_to }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let share = random.share();
        self.up_to.partition_point(|up_to| *up_to <= share) as u64
    }
}
