//! Servers that join others get less than their share at first.

use std::time::Duration;

use callward_router::{HealthState, StrategyName};
use callward_testkit::tool;
use tokio::time::advance;

use crate::bed::{Bed, fated, server, set};

#[tokio::test(start_paused = true)]
async fn a_server_that_joins_gets_a_tenth_of_its_share_and_then_more() {
    fastrand::seed(7);
    let read = tool("read").read_only().build();
    let (bed, _) = Bed::new(StrategyName::PeakEwma, 9);
    assert_eq!(
        bed.state("a"),
        HealthState::Healthy,
        "the first need no start"
    );
    bed.pool.add(set(), fated("n").0);
    assert_eq!(bed.state("n"), HealthState::SlowStart);
    let mut last = 0;
    let mut got = || {
        let all = bed.got("n");
        all - std::mem::replace(&mut last, all)
    };
    // its share would be 1,000 of 10,000
    for (secs, least, most) in [(0, 60, 150), (15, 400, 650), (15, 850, 1_150)] {
        advance(Duration::from_secs(secs)).await;
        bed.send_many(&read, 10_000).await;
        let got = got();
        assert!((least..=most).contains(&got), "{got} after {secs} s more");
    }
    assert_eq!(bed.state("n"), HealthState::Healthy);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_reweighed_goes_on_as_it_was() {
    let read = tool("read").read_only().build();
    let (bed, fates) = Bed::new(StrategyName::RoundRobin, 3);
    fates[2].fails();
    bed.send_many(&read, 30).await;
    assert_eq!(bed.state("c"), HealthState::Ejected);
    for id in ["a", "c"] {
        let weight = callward_core::Weight::new(80).unwrap();
        bed.pool.reweigh(&server(id), weight).unwrap();
    }
    assert_eq!(bed.state("c"), HealthState::Ejected);
    assert_eq!(bed.state("a"), HealthState::Healthy);
    // one that leaves takes its ejection with it, and another may be ejected
    bed.pool.remove_server(&server("c")).unwrap();
    fates[0].fails();
    bed.send_many(&read, 30).await;
    assert_eq!(bed.state("a"), HealthState::Ejected);
}
