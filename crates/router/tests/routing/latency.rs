//! What the default strategy makes of how long calls take, and the figures of each server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_router::{ServerStats, StrategyName};
use callward_testkit::MockService;
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};
use tower::Service;

use crate::bed::{Bed, member, not_sent, read, refusing, server, weight};

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

/// A bed of a server, and others that take 20 ms.
fn bed(first: &MockService, others: usize) -> Bed {
    let others = (0..others).map(|_| taking(&Arc::new(AtomicU64::new(20))));
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
    let bed = bed(&first, 3);
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
    let bed = bed(&hanging, 2);
    for _ in 0..200 {
        let _ = tokio::time::timeout(Duration::from_secs(5), bed.send(read())).await;
    }
    assert!(hanging.started() < 10, "{} of 200", hanging.started());
}

#[tokio::test(start_paused = true)]
async fn busy_servers_are_compared_by_weight() {
    fastrand::seed(19);
    for (strategy, expected) in [
        (StrategyName::LeastConnections, 80..=80),
        (StrategyName::PeakEwma, 77..=83),
    ] {
        let bed = Bed::by(strategy, "a=80 b=20");
        let mut router = bed.router.clone();
        // in flight from the choice on
        let held: Vec<_> = (0..100).map(|_| router.call(read())).collect();
        assert!(expected.contains(&bed.in_flight("a")), "{strategy:?}");
        drop(held);
    }
}

fn of(bed: &Bed, id: &str) -> ServerStats {
    let stats = bed.pool.stats();
    let mut servers = stats.into_iter().flat_map(|set| set.servers);
    servers.find(|one| one.server.as_str() == id).unwrap()
}

#[tokio::test(start_paused = true)]
async fn answers_are_counted_with_the_time_they_took() {
    // the n-th call takes n times 10 ms
    let service = MockService::new(|_, n| async move {
        sleep(Duration::from_millis(10 * n as u64)).await;
        Ok(ToolOutput::text("ok"))
    });
    let bed = Bed::one(member("a", &service));
    assert_eq!(of(&bed, "a").p50, None);
    for _ in 0..20 {
        bed.send(read()).await.unwrap();
    }
    let stats = of(&bed, "a");
    assert_eq!((stats.totals.answers, stats.in_flight), (20, 0));
    let rates = [stats.error_rate, stats.error_rate_ever];
    assert_eq!(rates, [Some(0.0); 2]);
    let millis = |millis| Some(Duration::from_millis(millis));
    assert_eq!((stats.p50, stats.p99), (millis(100), millis(200)));
    assert_eq!(stats.ewma, millis(200));
    // they stay, however long no call comes
    tokio::time::advance(Duration::from_secs(120)).await;
    assert_eq!(of(&bed, "a").p99, stats.p99);
    // and outlive an update of the set
    bed.pool.reweigh(&server("a"), weight(7)).unwrap();
    let after = of(&bed, "a");
    assert_eq!((after.totals, after.weight), (stats.totals, 7));
    let drained = bed.pool.drain(&server("a")).unwrap();
    drained.finished().await;
    assert!(of(&bed, "a").draining);
}

#[tokio::test(start_paused = true)]
async fn each_end_of_a_call_is_counted_as_what_it_is() {
    let full = not_sent(ErrorKind::Overloaded);
    let slow = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "slow");
    let gone = not_sent(ErrorKind::ConnectFailed);
    let never_ready = MockService::counting().never_ready(full.clone());
    let gated = MockService::gated().0;
    for (name, one, expected) in [
        ("full", refusing("a", full), [0, 0, 1, 0]),
        ("not reached", refusing("a", gone), [0, 1, 0, 0]),
        ("timeout", refusing("a", slow), [0, 1, 0, 0]),
        ("never ready", member("a", &never_ready), [0, 0, 1, 0]),
        ("dropped", member("a", &gated), [0, 0, 0, 1]),
    ] {
        let bed = Bed::one(one);
        // a gated server does not answer: its call is dropped
        let result = bed.send(read()).now_or_never();
        assert!(result.is_none_or(|result| result.is_err()), "{name}");
        let stats = of(&bed, "a");
        let all = stats.totals;
        let counted = [all.answers, all.faults, all.refusals, all.cancelled];
        assert_eq!((counted, stats.in_flight), (expected, 0), "{name}");
    }
}
