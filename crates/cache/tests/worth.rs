//! Under pressure the store keeps what is worth its room, and is no worse than LRU where all is
//! worth the same.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use callward_cache::{Admission, Entry, MokaStore, Store};
use callward_core::ToolOutput;
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(3600);
const FAST: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_secs(8);

/// Numbers that are the same in each run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of so many, those in front far more often: Zipf with an exponent of nearly 1.
    fn zipf(&mut self, many: u64) -> u64 {
        ((many as f64).powf(self.share()) as u64).min(many - 1)
    }
}

/// Spreads numbers over all bits, as the keys of calls are.
fn key(number: u64) -> u128 {
    let (high, low) = (Numbers(number).next(), Numbers(!number).next());
    u128::from(high) << 64 | u128::from(low)
}

/// One call: what is asked for, how long it takes upstream, and how many bytes come back.
type Call = (u64, Duration, usize);

/// How many calls a comparison takes: enough to fill the largest store below several times over.
const CALLS: u64 = 20_000;

/// What a cache did for the calls: hits in all, and upstream time saved.
#[derive(Debug, Default, Clone, Copy)]
struct Saved {
    hits: u64,
    time: Duration,
}

impl Saved {
    fn add(&mut self, cost: Duration) {
        self.hits += 1;
        self.time += cost;
    }
}

fn entry(cost: Duration, bytes: usize) -> Entry {
    Entry::new(ToolOutput::text("x".repeat(bytes)), HOUR, Instant::now()).with_cost(cost)
}

fn weight(bytes: usize) -> u64 {
    let store = MokaStore::new(1 << 30);
    store.put(1, entry(FAST, bytes));
    store.usage().bytes
}

fn with_store(max_bytes: u64, calls: &[Call]) -> Saved {
    let store = MokaStore::new(max_bytes);
    let mut saved = Saved::default();
    for (number, cost, bytes) in calls {
        if store.get(key(*number)).is_some() {
            saved.add(*cost);
        } else {
            store.put(key(*number), entry(*cost, *bytes));
        }
    }
    assert!(store.usage().bytes <= max_bytes + (64 << 10));
    saved
}

fn with_lru(max_bytes: u64, calls: &[Call]) -> Saved {
    let (mut by_key, mut by_time, mut total) = (HashMap::new(), BTreeMap::new(), 0);
    let overhead = weight(0);
    let mut saved = Saved::default();
    for (now, (number, cost, bytes)) in calls.iter().enumerate() {
        let weight = overhead + *bytes as u64;
        if let Some(before) = by_key.insert(*number, now) {
            by_time.remove(&before);
            saved.add(*cost);
        } else {
            total += weight;
        }
        by_time.insert(now, (*number, weight));
        while total > max_bytes
            && let Some((_, (number, weight))) = by_time.pop_first()
        {
            by_key.remove(&number);
            total -= weight;
        }
    }
    saved
}

/// Calls of many tools; a tool in four is slow where `slow` says so.
fn calls(slow: Duration, size: impl Fn(u64) -> usize) -> Vec<Call> {
    let mut numbers = Numbers(7);
    (0..CALLS)
        .map(|at| {
            // one in five comes only once: a scan beside the rest
            let number = if numbers.share() < 0.2 {
                1_000_000 + at
            } else {
                numbers.zipf(10_000)
            };
            let cost = if Numbers(number).next().is_multiple_of(4) {
                slow
            } else {
                FAST
            };
            (number, cost, size(number))
        })
        .collect()
}

#[test]
fn slow_results_outlive_fast_ones_under_pressure() {
    let store = MokaStore::new(2_000 * weight(200));
    let cost = |number: u64| if number.is_multiple_of(4) { SLOW } else { FAST };
    for number in 0..4_000 {
        store.put(key(number), entry(cost(number), 200));
    }
    let kept = |slow: bool| {
        let found = (0..4_000).filter(|number| (cost(*number) == SLOW) == slow);
        found
            .filter(|number| store.get(key(*number)).is_some())
            .count()
    };
    // a quarter was slow, and half of all fits in
    let (slow, fast) = (kept(true), kept(false));
    assert!(
        slow >= 800,
        "{slow} of 1,000 slow and {fast} of 3,000 fast results are kept"
    );
    assert!(
        fast >= 500,
        "{slow} of 1,000 slow and {fast} of 3,000 fast results are kept"
    );
}

#[test]
fn more_upstream_time_is_saved_than_by_lru() {
    let calls = calls(SLOW, |_| 200);
    for entries in [300, 600, 1_500] {
        let max_bytes = entries * weight(200);
        let (ours, lru) = (with_store(max_bytes, &calls), with_lru(max_bytes, &calls));
        let gain = ours.time.as_secs_f64() / lru.time.as_secs_f64();
        println!("{entries} entries: {ours:?}, LRU {lru:?}: {gain:.3} times the time");
        assert!(gain > 1.1, "{entries} entries: {ours:?}, LRU {lru:?}");
    }
}

#[test]
fn uniform_results_are_kept_no_worse_than_by_lru() {
    let calls = calls(FAST, |_| 200);
    for entries in [100, 500, 3_000] {
        let max_bytes = entries * weight(200);
        let (ours, lru) = (with_store(max_bytes, &calls), with_lru(max_bytes, &calls));
        println!("{entries} entries: {ours:?}, LRU {lru:?}");
        let points = 100.0 * (ours.hits as f64 - lru.hits as f64) / calls.len() as f64;
        assert!(
            points > -0.2,
            "{entries} entries: {points:.2} points, {ours:?}, LRU {lru:?}"
        );
    }
}

#[test]
fn a_loop_and_a_shift_of_interest_are_no_worse_than_with_lru() {
    let mut numbers = Numbers(3);
    let shifting: Vec<Call> = (0..CALLS)
        .map(|at| (numbers.zipf(3_000) + at * 3 / CALLS * 3_000, FAST, 200))
        .collect();
    let looping: Vec<Call> = (0..CALLS).map(|at| (at % 1_500, FAST, 200)).collect();
    for calls in [shifting, looping] {
        for entries in [300, 1_000] {
            let max_bytes = entries * weight(200);
            let (ours, lru) = (with_store(max_bytes, &calls), with_lru(max_bytes, &calls));
            println!("{entries} entries: {ours:?}, LRU {lru:?}");
            let points = 100.0 * (ours.hits as f64 - lru.hits as f64) / calls.len() as f64;
            assert!(points > -0.5, "{entries} entries: {points:.2} points");
        }
    }
}

#[test]
fn a_large_cheap_result_does_not_push_out_many_small_ones() {
    let size = |number: u64| {
        if Numbers(number).next() % 50 == 1 {
            60_000
        } else {
            200
        }
    };
    let calls = calls(FAST, size);
    for entries in [1_000, 4_000] {
        let max_bytes = entries * weight(200);
        let (ours, lru) = (with_store(max_bytes, &calls), with_lru(max_bytes, &calls));
        println!("{entries} entries: {ours:?}, LRU {lru:?}");
        assert!(ours.hits > lru.hits * 11 / 10, "{ours:?}, LRU {lru:?}");
    }
}

#[test]
fn uniform_results_are_never_refused() {
    let store = MokaStore::new(100 * weight(200));
    for number in 0..2_000 {
        let entry = entry(FAST, 200).with_odds(0.0);
        assert_eq!(store.put(key(number), entry), Admission::Stored);
    }
    let large = entry(FAST, 20_000);
    assert_eq!(store.put(key(1 << 40), large.clone()), Admission::TooCheap);
    assert_eq!(store.put(key(1 << 40), large), Admission::Stored);
}
