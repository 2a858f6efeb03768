//! Generated requests, in patterns that are typical for caches.

use callward_replay::KeyTrace;

use crate::day::random::Random;

/// The number of popular keys.
const POPULAR: u32 = 20_000;
/// The length of a run of unique keys: several times a small cache.
const SCAN: u64 = 2_000;

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
