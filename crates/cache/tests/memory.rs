//! What a store says it takes is what it takes: counted by the allocator, in bytes.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{Entry, MokaStore, Store};
use callward_core::ToolOutput;
use tokio::time::Instant;

/// Spreads numbers over all bits, as the keys of calls are.
fn key(number: u64) -> u128 {
    let spread = |seed: u64| {
        let z = (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (z ^ (z >> 29)).wrapping_mul(0xff51_afd7_ed55_8ccd)
    };
    u128::from(spread(1)) << 64 | u128::from(spread(2))
}

/// Stores so many distinct results, and holds what is allocated meanwhile against the bound.
fn fill(
    store: impl FnOnce() -> Arc<dyn Store>,
    bound: u64,
    keys: u64,
    size: impl Fn(u64) -> usize,
) {
    let mut usage = Default::default();
    let mut kept: Option<Arc<dyn Store>> = None;
    let info = allocation_counter::measure(|| {
        let store = store();
        for number in 0..keys {
            let output = ToolOutput::text("x".repeat(size(number)));
            let entry = Entry::new(output, Duration::from_secs(300), Instant::now());
            store.put(
                key(number),
                entry.with_cost(Duration::from_millis(number % 900)),
            );
            store.get(key(number / 3));
        }
        usage = store.usage();
        kept = Some(store);
    });
    let share = |bytes: f64| bytes / bound as f64;
    let (live, peak) = (
        share(info.bytes_current as f64),
        share(info.bytes_max as f64),
    );
    assert!(
        peak <= 1.10,
        "peak {peak:.3} of the bound: {usage:?} {kept:?}"
    );
    assert!(
        live >= 0.90,
        "live {live:.3} of the bound: {usage:?} {kept:?}"
    );
}

fn mixed(number: u64) -> usize {
    [40, 200, 700, 3_000, 90, 12_000][(key(number) % 6) as usize]
}

/// How many distinct results are stored into 64 MiB: as many as `STORE_KEYS` says, or what fills it
/// twice.
fn many() -> u64 {
    let asked = std::env::var("STORE_KEYS").ok();
    asked.and_then(|keys| keys.parse().ok()).unwrap_or(250_000)
}

// One test: what moka drops is freed by whichever thread is at it, and counted there.
#[test]
fn what_moka_holds_is_within_a_tenth_of_the_bound() {
    let bound = 16 << 20;
    fill(|| Arc::new(MokaStore::new(bound)), bound, 20_000, mixed);
    fill(|| Arc::new(MokaStore::new(bound)), bound, 70_000, |_| 30);
    let bound = 64 << 20;
    fill(|| Arc::new(MokaStore::new(bound)), bound, many(), |_| 30);
}

#[cfg(feature = "lean")]
#[test]
fn what_the_lean_store_holds_is_within_a_tenth_of_the_bound() {
    use callward_cache::LeanStore;

    let bound = 16 << 20;
    fill(|| Arc::new(LeanStore::new(bound)), bound, 20_000, mixed);
    fill(|| Arc::new(LeanStore::new(bound)), bound, 70_000, |_| 30);
}
