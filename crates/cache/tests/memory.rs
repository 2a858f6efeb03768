//! The memory of a full cache, counted by the allocator.
//!
//! One test in a binary of its own: moka's garbage is freed, and counted, by any thread of the
//! process.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::future::ready;

use callward_cache::{CacheConfig, CacheLayer};
use callward_core::ToolOutput;
use callward_testkit::{call, tool};
use serde_json::json;
use tower::{Layer, ServiceExt, service_fn};

/// Makes distinct reads and compares the bytes allocated meanwhile with the bound.
fn fill(max_bytes: u64, reads: u64, size: fn(u64) -> usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let get = tool("get").read_only().build();
    let mut kept = None;
    let info = allocation_counter::measure(|| {
        let mut config = CacheConfig::default();
        config.max_bytes = max_bytes;
        let layer = CacheLayer::new(config);
        for number in 0..reads {
            let output = ToolOutput::text("x".repeat(size(number)));
            let server = service_fn(move |_| ready(Ok(output.clone())));
            let call = call(&get, json!({"id": number}));
            assert!(runtime.block_on(layer.layer(server).oneshot(call)).is_ok());
        }
        kept = Some((layer.handle().stats(), layer));
    });
    let share = |bytes: f64| bytes / max_bytes as f64;
    let peak = share(info.bytes_max as f64);
    let live = share(info.bytes_current as f64);
    let (stats, _) = kept.unwrap();
    assert!(
        peak <= 1.10 && live >= 0.90,
        "{peak:.3} {live:.3} {stats:?}"
    );
}

#[test]
fn allocated_memory_is_within_a_tenth_of_the_bound() {
    fill(16 << 20, 20_000, |number| {
        [40, 200, 700, 3_000, 90, 12_000][(number % 6) as usize]
    });
    fill(16 << 20, 70_000, |_| 30);
}
