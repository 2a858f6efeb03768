//! What every store must hold, tried on each of ours.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{Account, Admission, Cause, Entry, MokaStore, Store, Watcher};
use callward_core::ToolOutput;
use parking_lot::Mutex;
use tokio::time::{Instant, advance};

const HOUR: Duration = Duration::from_secs(3600);

fn stores(max_bytes: u64) -> Vec<Arc<dyn Store>> {
    vec![
        Arc::new(MokaStore::new(max_bytes)),
        #[cfg(feature = "lean")]
        Arc::new(callward_cache::LeanStore::new(max_bytes)),
    ]
}

fn entry(text: &str, ttl: Duration) -> Entry {
    Entry::new(ToolOutput::text(text), ttl, Instant::now())
}

/// Spreads small numbers over all bits, as the keys of calls are.
fn key(number: u64) -> u128 {
    let spread = |seed: u64| {
        (number ^ seed)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    u128::from(spread(1)) << 64 | u128::from(spread(2).wrapping_mul(0xff51_afd7_ed55_8ccd))
}

fn text(store: &dyn Store, key: u128) -> Option<String> {
    store.get(key).map(|entry| entry.output().to_text())
}

type Told = Arc<Mutex<Vec<(String, Cause)>>>;

fn watched(store: &dyn Store) -> Told {
    let told = Told::default();
    let list = told.clone();
    let watcher: Watcher = Arc::new(move |entry, cause| {
        list.lock().push((entry.output().to_text(), cause));
    });
    store.watch(watcher);
    told
}

#[test]
fn what_was_put_is_found_until_it_is_replaced_or_removed() {
    for store in stores(1 << 20) {
        assert_eq!(text(&*store, key(1)), None);
        assert_eq!(store.put(key(1), entry("a", HOUR)), Admission::Stored);
        store.put(key(2), entry("b", HOUR));
        assert_eq!(text(&*store, key(1)).as_deref(), Some("a"), "{store:?}");
        store.put(key(1), entry("c", HOUR));
        assert_eq!(text(&*store, key(1)).as_deref(), Some("c"), "{store:?}");
        store.remove(key(1));
        store.remove(key(3));
        assert_eq!(text(&*store, key(1)), None, "{store:?}");
        assert_eq!(text(&*store, key(2)).as_deref(), Some("b"), "{store:?}");
        assert_eq!(store.usage().entries, 1, "{store:?}");
    }
}

#[test]
fn nothing_is_found_after_everything_was_cleared() {
    for store in stores(1 << 20) {
        for number in 0..100 {
            store.put(key(number), entry("a", HOUR));
        }
        store.clear();
        assert!(
            (0..100).all(|number| store.get(key(number)).is_none()),
            "{store:?}"
        );
        assert_eq!(store.usage().entries, 0, "{store:?}");
        store.put(key(1), entry("b", HOUR));
        assert_eq!(text(&*store, key(1)).as_deref(), Some("b"), "{store:?}");
    }
}

#[test]
fn the_bound_is_kept_and_every_entry_is_accounted_for() {
    let account = Arc::new(Account::default());
    for store in stores(400_000) {
        let told = watched(&*store);
        for number in 0..5_000 {
            let entry = entry(&"x".repeat(500), HOUR).with_account(account.clone());
            assert_eq!(store.put(key(number), entry), Admission::Stored);
            // some are used, so that some live twice
            store.get(key(number / 2));
        }
        let usage = store.usage();
        assert!(usage.bytes <= 400_000, "{usage:?} {store:?}");
        assert!(usage.bytes >= 300_000, "{usage:?} {store:?}");
        assert_eq!(usage.evicted + usage.entries, 5_000, "{store:?}");
        let told = std::mem::take(&mut *told.lock());
        assert_eq!(told.len() as u64, usage.evicted, "{store:?}");
        assert!(
            told.iter().all(|(_, cause)| *cause == Cause::Size),
            "{store:?}"
        );
        store.clear();
        drop(store);
    }
}

#[test]
fn an_account_holds_what_its_store_holds() {
    let account = Arc::new(Account::default());
    for store in stores(1 << 20) {
        for number in 0..50 {
            store.put(key(number), entry("x", HOUR).with_account(account.clone()));
        }
        let usage = store.usage();
        assert_eq!(
            (account.entries(), account.bytes()),
            (50, usage.bytes),
            "{store:?}"
        );
        for number in 0..50 {
            store.remove(key(number));
        }
        store.usage();
        assert_eq!((account.entries(), account.bytes()), (0, 0), "{store:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_watcher_hears_why_an_entry_went() {
    for store in stores(1 << 20) {
        let told = watched(&*store);
        store.put(key(1), entry("replaced", HOUR));
        store.put(key(1), entry("ended", Duration::from_secs(1)));
        advance(Duration::from_secs(2)).await;
        store.put(key(1), entry("removed", HOUR));
        store.remove(key(1));
        store.put(key(2), entry("cleared", HOUR));
        store.clear();
        store.usage();
        let told: Vec<_> = std::mem::take(&mut *told.lock());
        let told: Vec<_> = told
            .iter()
            .map(|(text, cause)| (text.as_str(), *cause))
            .collect();
        let expected = [
            ("replaced", Cause::Replaced),
            ("ended", Cause::Expired),
            ("removed", Cause::Cleared),
            ("cleared", Cause::Cleared),
        ];
        assert_eq!(told, expected, "{store:?}");
    }
}

#[test]
fn what_is_larger_than_the_store_is_refused_and_leaves_nothing_older_behind() {
    for store in stores(20_000) {
        store.put(key(1), entry("small", HOUR));
        let refused = store.put(key(1), entry(&"x".repeat(30_000), HOUR));
        assert_eq!(refused, Admission::TooLarge, "{store:?}");
        assert!(store.get(key(1)).is_none(), "{store:?}");
    }
    for store in stores(0) {
        assert_eq!(
            store.put(key(1), entry("a", HOUR)),
            Admission::TooLarge,
            "{store:?}"
        );
        assert!(store.get(key(1)).is_none(), "{store:?}");
    }
}

#[test]
fn nothing_that_was_removed_comes_back_while_threads_put() {
    for store in stores(60_000) {
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let store = store.clone();
                scope.spawn(move || {
                    for round in 0..4_000_u64 {
                        let mine = key(thread * 10 + round % 10);
                        store.put(mine, entry(&"x".repeat(400), HOUR));
                        store.get(mine);
                        for other in 0..20 {
                            store.put(key(1_000 + other + round % 200), entry("y", HOUR));
                        }
                        store.remove(mine);
                        assert!(store.get(mine).is_none(), "{store:?}");
                    }
                });
            }
        });
    }
}

/// Looks often enough for any short cut a store may take.
fn found_often(store: &dyn Store, number: u64) -> Option<String> {
    let found = (0..100).map(|_| store.get(key(number))).last().flatten();
    found.map(|entry| entry.output().to_text())
}

#[test]
fn what_was_found_often_is_replaced_removed_and_cleared_like_anything_else() {
    for store in stores(1 << 20) {
        for number in 0..3 {
            store.put(key(number), entry("old", HOUR));
            let found = found_often(&*store, number);
            assert_eq!(found.as_deref(), Some("old"), "{store:?}");
        }
        store.put(key(0), entry("new", HOUR));
        let found = found_often(&*store, 0);
        assert_eq!(found.as_deref(), Some("new"), "{store:?}");
        store.remove(key(1));
        assert_eq!(found_often(&*store, 1), None, "{store:?}");
        store.clear();
        assert_eq!(found_often(&*store, 2), None, "{store:?}");
    }
}

#[test]
fn what_was_found_often_makes_room_in_the_end() {
    let store = MokaStore::new(1 << 20);
    store.put(key(0), entry("old", HOUR));
    assert!(found_often(&store, 0).is_some());
    // many times what there is room for: it has more lives than one
    for number in 1..20_000 {
        store.put(key(number), entry(&"x".repeat(1000), HOUR));
    }
    store.usage();
    assert!((0..100).all(|_| store.get(key(0)).is_none()), "{store:?}");
}

/// Whatever an operator sets: no room, or more than any machine has.
#[test]
fn a_bound_may_be_nothing_or_endless() {
    for (max_bytes, kept) in [(0, false), (1, false), (u64::MAX, true)] {
        for store in stores(max_bytes) {
            store.put(key(1), entry("a", Duration::MAX));
            assert_eq!(store.get(key(1)).is_some(), kept, "{max_bytes} {store:?}");
            store.clear();
            assert_eq!(store.usage().entries, 0, "{max_bytes} {store:?}");
        }
    }
}
