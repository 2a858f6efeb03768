//! The store alone: what it finds, what it drops, and how that compares to LRU.

use std::collections::VecDeque;
use std::time::Duration;

use callward_core::ToolOutput;
use tokio::time::advance;

use super::*;
use crate::fresh::Expiry;

const HOUR: Duration = Duration::from_secs(3600);
const FAST: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_secs(8);

fn store(max_bytes: u64) -> MokaStore {
    let config = CacheConfig {
        max_bytes,
        ..CacheConfig::default()
    };
    MokaStore::new(&config)
}

fn entry(text: &str, ttl: Duration, cost: Duration) -> Entry {
    let expiry = Expiry {
        ttl,
        stale: Duration::ZERO,
        stated: false,
    };
    Entry::new(&ToolOutput::text(text), expiry, Instant::now(), cost, cost)
}

fn text(store: &MokaStore, key: u128) -> Option<String> {
    store.get(key).map(|entry| entry.output.to_text())
}

#[test]
fn an_entry_is_found_until_it_is_replaced_removed_or_cleared() {
    let store = store(1 << 20);
    assert_eq!(text(&store, 1), None);
    for value in ["a", "b"] {
        assert!(store.put(1, entry(value, HOUR, FAST)));
        assert_eq!(text(&store, 1).as_deref(), Some(value));
    }
    store.put(2, entry("c", HOUR, FAST));
    store.remove(1);
    store.remove(3);
    assert_eq!((text(&store, 1), store.usage().entries), (None, 1));
    store.clear();
    assert_eq!((text(&store, 2), store.usage().entries), (None, 0));
    store.put(2, entry("d", HOUR, FAST));
    assert_eq!(text(&store, 2).as_deref(), Some("d"));
}

#[tokio::test(start_paused = true)]
async fn evictions_are_counted_by_cause() {
    let store = store(1 << 20);
    store.put(1, entry("replaced", HOUR, FAST));
    store.put(1, entry("expired", Duration::from_secs(1), FAST));
    advance(Duration::from_secs(2)).await;
    store.put(1, entry("removed", HOUR, FAST));
    store.remove(1);
    store.put(2, entry("cleared", HOUR, FAST));
    store.clear();
    let _ran_pending_tasks = store.usage();
    let evictions = store.evictions();
    for (cause, count) in [
        (EvictionCause::Replaced, 1),
        (EvictionCause::Expired, 1),
        (EvictionCause::Cleared, 2),
    ] {
        assert_eq!(evictions.get(cause), count, "{cause:?}");
    }
}

#[test]
fn an_entry_larger_than_the_store_removes_the_older_one() {
    let store = store(20_000);
    store.put(1, entry("small", HOUR, FAST));
    assert!(!store.put(1, entry(&"x".repeat(30_000), HOUR, FAST)));
    assert!(store.get(1).is_none());
}

#[test]
fn a_bound_may_be_zero_or_endless() {
    for (max_bytes, kept) in [(0, false), (1, false), (u64::MAX, true)] {
        let store = store(max_bytes);
        assert_eq!(store.put(1, entry("a", Duration::MAX, FAST)), kept);
        assert_eq!(store.get(1).is_some(), kept, "{max_bytes}");
        store.clear();
        assert_eq!(store.usage().entries, 0, "{max_bytes}");
    }
}

#[test]
fn a_removed_entry_does_not_return_while_threads_put() {
    let store = store(60_000);
    std::thread::scope(|scope| {
        for thread in 0..2_u128 {
            let store = store.clone();
            scope.spawn(move || {
                for round in 0..1_000_u128 {
                    let mine = thread * 10 + round % 10;
                    store.put(mine, entry(&"x".repeat(400), HOUR, SLOW));
                    store.get(mine);
                    for other in 0..20 {
                        store.put(1_000 + other + round % 200, entry("y", HOUR, FAST));
                    }
                    store.remove(mine);
                    assert!(store.get(mine).is_none());
                }
            });
        }
    });
}

#[test]
fn a_slow_entry_without_hits_is_evicted_in_the_end() {
    let store = store(1 << 20);
    store.put(0, entry("slow", HOUR, 60 * SLOW));
    for number in 1..30_000 {
        store.put(number, entry(&"x".repeat(1000), HOUR, FAST));
    }
    assert!(store.get(0).is_none());
}

/// Zipf with an exponent of nearly 1.
fn zipf(numbers: &mut fastrand::Rng, many: u64) -> u64 {
    ((many as f64).powf(numbers.f64()) as u64).min(many - 1)
}

/// A call: its key, and its upstream time.
type Call = (u64, Duration);

/// Enough to fill the largest store below several times.
const CALLS: u64 = 20_000;

const BYTES: usize = 200;

fn weight() -> u64 {
    entry(&"x".repeat(BYTES), HOUR, FAST).weight()
}

/// Returns the share of hits in percent, and the seconds that they save.
fn saved(calls: &[Call], mut is_hit: impl FnMut(&Call) -> bool) -> (f64, f64) {
    let hits: Vec<&Call> = calls.iter().filter(|call| is_hit(call)).collect();
    let seconds = hits.iter().map(|(_, cost)| cost.as_secs_f64());
    (
        100.0 * hits.len() as f64 / calls.len() as f64,
        seconds.sum(),
    )
}

/// Plays calls to the store, and to LRU.
fn with_both(entries: usize, calls: &[Call]) -> [(f64, f64); 2] {
    let store = store(entries as u64 * weight());
    let ours = saved(calls, |(number, cost)| {
        let is_hit = store.get(u128::from(*number)).is_some();
        if !is_hit {
            store.put(u128::from(*number), entry(&"x".repeat(BYTES), HOUR, *cost));
        }
        is_hit
    });
    let mut queue = VecDeque::new();
    let lru = saved(calls, |(number, _)| {
        let at = queue.iter().rposition(|of| of == number);
        at.and_then(|at| queue.remove(at));
        queue.push_back(*number);
        if queue.len() > entries {
            queue.pop_front();
        }
        at.is_some()
    });
    [ours, lru]
}

/// Calls of many tools; one tool in four takes `slow`.
fn calls(slow: Duration) -> Vec<Call> {
    let mut numbers = fastrand::Rng::with_seed(7);
    let call = |at| {
        // one in five comes only once: a scan beside the rest
        let number = if numbers.f64() < 0.2 {
            1_000_000 + at
        } else {
            zipf(&mut numbers, 10_000)
        };
        let is_slow = fastrand::Rng::with_seed(number).u8(..4) == 0;
        (number, if is_slow { slow } else { FAST })
    };
    (0..CALLS).map(call).collect()
}

#[test]
fn more_upstream_time_is_saved_than_by_lru() {
    let calls = calls(SLOW);
    for entries in [300, 600, 1_500] {
        let [(_, ours), (_, lru)] = with_both(entries, &calls);
        let gain = ours / lru;
        println!("{entries} entries: {gain:.3} times the time");
        assert!(gain > 1.1, "{entries} entries: {gain:.3}");
    }
}

#[test]
fn fast_results_of_one_size_are_kept_no_worse_than_by_lru() {
    let mut numbers = fastrand::Rng::with_seed(3);
    let shifting = |at| (zipf(&mut numbers, 3_000) + at * 3 / CALLS * 3_000, FAST);
    let shifting = (0..CALLS).map(shifting).collect();
    let looping = (0..CALLS).map(|at| (at % 1_500, FAST)).collect();
    for (calls, tolerance) in [(calls(FAST), 0.2), (shifting, 0.5), (looping, 0.5)] {
        for entries in [100, 300, 1_000, 3_000] {
            let [(ours, _), (lru, _)] = with_both(entries, &calls);
            let points = ours - lru;
            assert!(points > -tolerance, "{entries} entries: {points:.2} points");
        }
    }
}
