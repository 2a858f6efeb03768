//! What a pool knows of its servers, in numbers.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use crate::bed::{Bed, counting, member, not_sent, refusing, weight};
use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_router::{Member, ServerStats, StrategyName};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use serde_json::json;

fn read() -> ToolCall {
    call(&tool("read").read_only().build(), json!({}))
}

fn of(bed: &Bed, id: &str) -> ServerStats {
    let stats = bed.pool.stats();
    let mut servers = stats.into_iter().flat_map(|set| set.servers);
    servers.find(|one| one.server.as_str() == id).unwrap()
}

/// Answers its n-th call after n times 10 ms.
fn slower_and_slower() -> Member<MockService> {
    let service = MockService::new(|_, n| async move {
        tokio::time::sleep(Duration::from_millis(10 * n as u64)).await;
        Ok(ToolOutput::text("ok"))
    });
    member("a", &service)
}

#[tokio::test(start_paused = true)]
async fn answers_are_counted_with_the_time_they_took() {
    let bed = Bed::new(StrategyName::default(), vec![slower_and_slower()]);
    assert_eq!(of(&bed, "a").latency.p50, None);
    for _ in 0..20 {
        bed.send(read()).await.unwrap();
    }
    let stats = of(&bed, "a");
    assert_eq!((stats.totals.answers, stats.totals.ended()), (20, 20));
    assert_eq!((stats.error_rate, stats.in_flight), (Some(0.0), 0));
    assert_eq!(stats.latency.answers, 20);
    let millis = |millis| Some(Duration::from_millis(millis));
    assert_eq!(stats.latency.p50, millis(100));
    assert_eq!(stats.latency.p99, millis(200));
    // they stay, however long no call comes
    tokio::time::advance(Duration::from_secs(120)).await;
    assert_eq!(of(&bed, "a").latency, stats.latency);
    assert_eq!(stats.error_rate_ever, Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn each_end_of_a_call_is_counted_as_what_it_is() {
    let fault = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "slow");
    let cases = [
        (not_sent(ErrorKind::Overloaded), [0, 0, 1, 0]),
        (not_sent(ErrorKind::ConnectFailed), [0, 1, 0, 0]),
        (fault, [0, 1, 0, 0]),
    ];
    for (error, expected) in cases {
        let bed = Bed::new(StrategyName::default(), vec![refusing("a", error.clone())]);
        bed.send(read()).await.unwrap_err();
        let totals = of(&bed, "a").totals;
        let reported = [
            totals.answers,
            totals.faults,
            totals.refusals,
            totals.cancelled,
        ];
        assert_eq!(reported, expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_counts_as_cancelled_and_no_longer_as_in_flight() {
    let (service, _gate) = MockService::gated();
    let bed = Bed::new(StrategyName::default(), vec![member("a", &service)]);
    let mut running = Box::pin(bed.send(read()));
    assert!(running.as_mut().now_or_never().is_none());
    assert_eq!(of(&bed, "a").in_flight, 1);
    drop(running);
    let stats = of(&bed, "a");
    assert_eq!((stats.in_flight, stats.totals.cancelled), (0, 1));
    assert_eq!((stats.totals.ended(), stats.error_rate), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_gets_ready_refused_the_call() {
    let service = MockService::counting().never_ready(not_sent(ErrorKind::Overloaded));
    let bed = Bed::new(StrategyName::default(), vec![member("a", &service)]);
    bed.send(read()).await.unwrap_err();
    assert_eq!(of(&bed, "a").totals.refusals, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_a_server_outlives_an_update_of_its_set() {
    let bed = Bed::new(StrategyName::default(), vec![counting("a"), counting("b")]);
    for _ in 0..50 {
        bed.send(read()).await.unwrap();
    }
    let before = of(&bed, "a").totals;
    bed.pool
        .reweigh(&crate::bed::server("a"), weight(7))
        .unwrap();
    let after = of(&bed, "a");
    assert_eq!((after.totals, after.weight), (before, 7));
}

#[tokio::test(start_paused = true)]
async fn they_are_plain_data() {
    let bed = Bed::new(StrategyName::default(), vec![slower_and_slower()]);
    bed.send(read()).await.unwrap();
    let drained = bed.pool.drain(&crate::bed::server("a")).unwrap();
    drained.finished().await;
    let mut written = serde_json::to_value(bed.pool.stats()).unwrap();
    let latency = written[0]["servers"][0]["latency"].take();
    assert_eq!(latency["p50_ms"], latency["p99_ms"]);
    assert_eq!(
        written,
        json!([{
            "set": "test",
            "servers": [{
                "server": "a",
                "weight": 50,
                "draining": true,
                "in_flight": 0,
                "totals": {"answers": 1, "faults": 0, "refusals": 0, "cancelled": 0},
                "error_rate": 0.0,
                "error_rate_ever": 0.0,
                "ewma_ms": 10.0,
                "latency": null,
            }],
        }])
    );
}
