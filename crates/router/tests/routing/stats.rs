//! The figures of a pool about its servers.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use crate::bed::{Bed, member, not_sent, read, refusing, server, weight};
use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_router::ServerStats;
use callward_testkit::MockService;
use futures_util::FutureExt;

fn of(bed: &Bed, id: &str) -> ServerStats {
    let stats = bed.pool.stats();
    let mut servers = stats.into_iter().flat_map(|set| set.servers);
    servers.find(|one| one.server.as_str() == id).unwrap()
}

#[tokio::test(start_paused = true)]
async fn answers_are_counted_with_the_time_they_took() {
    // the n-th call takes n times 10 ms
    let service = MockService::new(|_, n| async move {
        tokio::time::sleep(Duration::from_millis(10 * n as u64)).await;
        Ok(ToolOutput::text("ok"))
    });
    let bed = Bed::one(member("a", &service));
    assert_eq!(of(&bed, "a").p50, None);
    for _ in 0..20 {
        bed.send(read()).await.unwrap();
    }
    let stats = of(&bed, "a");
    assert_eq!((stats.totals.answers, stats.in_flight), (20, 0));
    assert_eq!(
        (stats.error_rate, stats.error_rate_ever),
        (Some(0.0), Some(0.0))
    );
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
        let totals = stats.totals;
        let counted = [
            totals.answers,
            totals.faults,
            totals.refusals,
            totals.cancelled,
        ];
        assert_eq!((counted, stats.in_flight), (expected, 0), "{name}");
    }
}
