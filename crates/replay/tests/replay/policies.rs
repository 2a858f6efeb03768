//! The simulators against naive versions of the same policies.

use std::collections::HashMap;

use callward_replay::policies::{Belady, Queued, S3Fifo, Simulator, WTinyLfu};
use proptest::prelude::*;

/// Requests for few keys, so that they repeat.
fn requests() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(0_u32..9, 0..80)
}

fn hits(simulator: &mut dyn Simulator, keys: &[u32]) -> Vec<bool> {
    keys.iter().map(|key| simulator.access(*key, 1)).collect()
}

/// Keeps a list. `choose` picks the place to evict from the uses and the last use of each key.
fn plain(
    capacity: usize,
    keys: &[u32],
    choose: impl Fn(&[(u32, usize, usize)]) -> Option<usize>,
) -> Vec<bool> {
    // key, uses, last use; in the order they were stored
    let mut kept: Vec<(u32, usize, usize)> = Vec::new();
    let mut hits = Vec::new();
    for (now, key) in keys.iter().enumerate() {
        let found = kept.iter_mut().find(|(held, ..)| held == key);
        hits.push(found.is_some());
        if let Some((_, uses, last)) = found {
            *uses += 1;
            *last = now;
            continue;
        }
        if kept.len() == capacity {
            let Some(place) = choose(&kept) else { continue };
            kept.remove(place);
        }
        kept.push((*key, 1, now));
    }
    hits
}

fn place_of_least<K: Ord>(
    kept: &[(u32, usize, usize)],
    rank: impl Fn(&(u32, usize, usize)) -> K,
) -> Option<usize> {
    (0..kept.len()).min_by_key(|place| rank(&kept[*place]))
}

/// The maximum number of hits if each miss is stored, by exhaustive search.
fn most_hits(keys: &[u32], capacity: usize) -> usize {
    let mut states: HashMap<Vec<u32>, usize> = HashMap::from([(Vec::new(), 0)]);
    for key in keys {
        let mut next: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut reach = |mut kept: Vec<u32>, hits: usize| {
            kept.sort_unstable();
            let best = next.entry(kept).or_insert(hits);
            *best = hits.max(*best);
        };
        for (kept, hits) in states {
            if kept.contains(key) {
                reach(kept, hits + 1);
            } else if kept.len() < capacity {
                reach([kept, vec![*key]].concat(), hits);
            } else if capacity == 0 {
                reach(kept, hits);
            } else {
                for place in 0..kept.len() {
                    let mut kept = kept.clone();
                    kept[place] = *key;
                    reach(kept, hits);
                }
            }
        }
        states = next;
    }
    states.into_values().max().unwrap_or(0)
}

proptest! {
    #[test]
    fn queues_evict_by_age_use_or_count(keys in requests(), capacity in 0_usize..6) {
        let size = capacity as u64;
        let want = plain(capacity, &keys, |kept| place_of_least(kept, |(_, _, last)| *last));
        prop_assert_eq!(hits(&mut Queued::lru(size), &keys), want, "lru");
        let want = plain(capacity, &keys, |kept| (!kept.is_empty()).then_some(0));
        prop_assert_eq!(hits(&mut Queued::fifo(size), &keys), want, "fifo");
        let want = plain(capacity, &keys, |kept| {
            place_of_least(kept, |(_, uses, last)| (*uses, *last))
        });
        prop_assert_eq!(hits(&mut Queued::lfu(size), &keys), want, "lfu");
    }

    #[test]
    fn belady_has_the_maximum_number_of_hits(
        keys in proptest::collection::vec(0_u32..7, 0..30),
        capacity in 0_usize..5,
    ) {
        let found = hits(&mut Belady::new(capacity as u64, &keys), &keys);
        let found = found.into_iter().filter(|hit| *hit).count();
        prop_assert_eq!(found, most_hits(&keys, capacity));
    }

    /// A hit needs an earlier request, and the capacity holds.
    #[test]
    fn every_policy_respects_its_capacity(
        requests in proptest::collection::vec((0_u32..30, 1_u64..9), 0..200),
        capacity in 0_u64..40,
    ) {
        let mut policies: Vec<Box<dyn Simulator>> = vec![
            Box::new(Queued::fifo(0)),
            Box::new(Queued::fifo(capacity)),
            Box::new(Queued::lru(capacity)),
            Box::new(Queued::lfu(capacity)),
            Box::new(S3Fifo::new(capacity)),
            Box::new(WTinyLfu::new(capacity, capacity / 4)),
        ];
        let mut seen = Queued::fifo(u64::MAX);
        for (key, size) in requests {
            let before = seen.access(key, size);
            for policy in &mut policies {
                let hit = policy.access(key, size);
                prop_assert!(before || !hit);
                prop_assert!(policy.weight() <= capacity);
            }
        }
    }
}

/// Repeated keys, interleaved with as many unique ones.
fn scanned() -> Vec<u32> {
    (0..4000_u32).flat_map(|n| [n % 20, 1000 + n]).collect()
}

#[test]
fn w_tinylfu_keeps_used_keys_through_a_scan() {
    let keys = scanned();
    let count = |simulator: &mut dyn Simulator| {
        let hits = hits(simulator, &keys);
        hits.into_iter().filter(|hit| *hit).count()
    };
    assert_eq!(count(&mut Queued::lru(25)), 0);
    let kept = count(&mut WTinyLfu::new(25, 25));
    assert!(kept > 3800, "{kept} of 4000");
}
