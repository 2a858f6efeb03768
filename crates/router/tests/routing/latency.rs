//! What the default strategy makes of how long calls take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::ToolOutput;
use callward_router::StrategyName;
use callward_testkit::MockService;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};
use tower::Service;

use crate::bed::{Bed, member, read, weight};

/// A server whose calls take this many milliseconds, until the number changes.
fn taking(millis: &Arc<AtomicU64>) -> MockService {
    let millis = millis.clone();
    MockService::new(move |_, _| {
        let millis = millis.load(Ordering::SeqCst);
        async move {
            sleep(Duration::from_millis(millis)).await;
            Ok(ToolOutput::text("done"))
        }
    })
}

fn steady(millis: u64) -> MockService {
    taking(&Arc::new(AtomicU64::new(millis)))
}

/// A bed of a server, and others that take this many milliseconds.
fn bed(first: &MockService, others: usize, millis: u64) -> Bed {
    let others = (0..others).map(|_| steady(millis));
    let all = std::iter::once(first.clone()).chain(others).enumerate();
    let members = all.map(|(n, service)| member(&format!("s{n}"), &service));
    Bed::new(StrategyName::PeakEwma, members.collect())
}

/// Sends this many calls, one every this many milliseconds, and waits for all of them.
async fn load(bed: &Bed, calls: u64, every: u64) {
    let start = Instant::now();
    let all = (0..calls).map(|n| async move {
        tokio::time::sleep_until(start + Duration::from_millis(n * every)).await;
        let _ = bed.send(read()).await;
    });
    join_all(all).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_fast_again_gets_its_share_again() {
    fastrand::seed(11);
    let pace = Arc::new(AtomicU64::new(500));
    let first = taking(&pace);
    let bed = bed(&first, 3, 20);
    load(&bed, 500, 5).await;
    let while_slow = first.started();
    assert!(while_slow < 25, "{while_slow}");
    pace.store(20, Ordering::SeqCst);
    // it is tried again when what is known of it is old, and by then believed
    load(&bed, 20_000, 5).await;
    let before = first.started();
    load(&bed, 1000, 5).await;
    let after = first.started() - before;
    assert!((150..350).contains(&after), "{after} of 1000");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_known_by_the_calls_that_were_given_up() {
    fastrand::seed(17);
    let (hanging, _gate) = MockService::gated();
    let bed = bed(&hanging, 2, 20);
    for _ in 0..200 {
        let _ = tokio::time::timeout(Duration::from_secs(5), bed.send(read())).await;
    }
    assert!(hanging.started() < 10, "{} of 200", hanging.started());
}

#[tokio::test(start_paused = true)]
async fn busy_servers_are_compared_by_weight() {
    fastrand::seed(19);
    let (heavy, _heavy) = MockService::gated();
    let (light, _light) = MockService::gated();
    let members = vec![
        member("a", &heavy).with_weight(weight(80)),
        member("b", &light).with_weight(weight(20)),
    ];
    let bed = Bed::new(StrategyName::PeakEwma, members);
    let mut router = bed.router.clone();
    let held: Vec<_> = (0..100).map(|_| router.call(read())).collect();
    let (a, b) = (bed.in_flight("a"), bed.in_flight("b"));
    assert!((77..=83).contains(&a), "{a} and {b}");
    drop(held);
}
