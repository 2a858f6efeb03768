//! What the default strategy makes of how long calls take, and of how they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, Tool, ToolError, ToolOutput};
use callward_router::StrategyName;
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use crate::bed::{Bed, member, weight};

/// A server whose calls take this many milliseconds, as long as the number is left alone.
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

/// A bed of these servers, named by their place.
fn bed(services: &[MockService]) -> Bed {
    let members = services
        .iter()
        .enumerate()
        .map(|(n, service)| member(&format!("s{n}"), service));
    Bed::new(StrategyName::PeakEwma, members.collect())
}

/// Sends this many calls, one every this many milliseconds, and waits for all of them.
async fn load(bed: &Bed, tool: &Arc<Tool>, calls: u64, every: u64) {
    let start = Instant::now();
    let all = (0..calls).map(|n| async move {
        tokio::time::sleep_until(start + Duration::from_millis(n * every)).await;
        let _ = bed.send(call(tool, json!({}))).await;
    });
    join_all(all).await;
}

fn read() -> Arc<Tool> {
    tool("read").read_only().build()
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_of_ten_gets_few_calls() {
    fastrand::seed(7);
    let services: Vec<_> = (0..10)
        .map(|n| steady(if n == 0 { 1000 } else { 50 }))
        .collect();
    let bed = bed(&services);
    load(&bed, &read(), 2000, 10).await;
    let slow = services[0].started();
    assert!(slow < 20, "{slow} of 2000");
    for service in &services[1..] {
        assert!(
            (150..320).contains(&service.started()),
            "{}",
            service.started()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_fast_attracts_nobody() {
    for servers in [2, 5, 10, 40] {
        for millis in [0, 1] {
            fastrand::seed(servers);
            let failing = MockService::new(move |_, _| async move {
                sleep(Duration::from_millis(millis)).await;
                let text = "broken";
                Err(ToolError::new(
                    ErrorKind::ServerFault,
                    Delivery::Answered,
                    text,
                ))
            });
            let others = (1..servers).map(|_| steady(50));
            let services: Vec<_> = std::iter::once(failing).chain(others).collect();
            let bed = bed(&services);
            load(&bed, &read(), 1000, 5).await;
            let failed = services[0].started();
            assert!(failed <= 6, "{failed} of 1000 among {servers}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_begins_to_fail_is_left_within_a_few_calls() {
    fastrand::seed(3);
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = broken.clone();
    let flapping = MockService::new(move |_, _| {
        let is_broken = is_broken.load(Ordering::SeqCst);
        async move {
            if is_broken {
                let text = "broken";
                return Err(ToolError::new(
                    ErrorKind::ServerFault,
                    Delivery::Answered,
                    text,
                ));
            }
            sleep(Duration::from_millis(20)).await;
            Ok(ToolOutput::text("done"))
        }
    });
    let others = (1..10).map(|_| steady(20));
    let services: Vec<_> = std::iter::once(flapping).chain(others).collect();
    let bed = bed(&services);
    load(&bed, &read(), 1000, 1).await;
    let before = services[0].started();
    assert!(before > 50, "{before}");
    broken.store(true, Ordering::SeqCst);
    load(&bed, &read(), 1000, 1).await;
    let failed = services[0].started() - before;
    assert!(failed <= 5, "{failed} failed");
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_not_taken_for_a_fast_one_because_nobody_asked_it() {
    fastrand::seed(5);
    let services = [steady(3000), steady(20), steady(20)];
    let bed = bed(&services);
    // so few calls that all is old each time
    for _ in 0..100 {
        bed.send(call(&read(), json!({}))).await.unwrap();
        advance(Duration::from_secs(4)).await;
    }
    let slow = services[0].started();
    assert!(slow < 10, "{slow} of 100");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_fast_again_gets_its_share_again() {
    fastrand::seed(11);
    let pace = Arc::new(AtomicU64::new(500));
    let services = [taking(&pace), steady(20), steady(20), steady(20)];
    let bed = bed(&services);
    load(&bed, &read(), 500, 5).await;
    let while_slow = services[0].started();
    assert!(while_slow < 25, "{while_slow}");
    pace.store(20, Ordering::SeqCst);
    // it is tried again when what is known of it is old, and by then believed
    load(&bed, &read(), 20_000, 5).await;
    let before = services[0].started();
    load(&bed, &read(), 1000, 5).await;
    let after = services[0].started() - before;
    assert!((150..350).contains(&after), "{after} of 1000");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_known_by_the_calls_that_were_given_up() {
    fastrand::seed(17);
    let (hanging, _gate) = MockService::gated();
    let services = [hanging, steady(20), steady(20)];
    let bed = bed(&services);
    let read = read();
    for _ in 0..200 {
        let sent = bed.send(call(&read, json!({})));
        let _ = tokio::time::timeout(Duration::from_secs(5), sent).await;
    }
    let hung = services[0].started();
    assert!(hung < 10, "{hung} of 200");
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
    let read = read();
    let mut router = bed.router();
    let held: Vec<_> = (0..100)
        .map(|_| tower::Service::call(&mut router, call(&read, json!({}))))
        .collect();
    let (a, b) = (bed.in_flight("a"), bed.in_flight("b"));
    assert!((77..=83).contains(&a), "{a} and {b}");
    drop(held);
}
