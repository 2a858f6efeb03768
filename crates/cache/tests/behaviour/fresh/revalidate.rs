//! Serving an old answer while a new one is fetched.

use std::time::Duration;

use callward_cache::CacheConfig;
use callward_testkit::{Gate, MockService};
use tokio::time::advance;

use crate::common::{Bench, read, settle, write};
use crate::script::check;

/// A cache that has an answer whose time is over, and a server that waits for the gate.
async fn ended() -> (Bench, Gate) {
    let (mock, gate) = MockService::gated();
    let mut config = CacheConfig::default();
    config.stale_while_revalidate = Duration::from_secs(60);
    let bench = Bench::with(config, mock);
    gate.open(1);
    assert_eq!(bench.text(read()).await, "1");
    advance(Duration::from_secs(300)).await;
    (bench, gate)
}

/// The same, in a script.
const ENDED: &str = "conf:stale_while_revalidate=60s server:gate open:1 get=1 +300s";

#[tokio::test(start_paused = true)]
async fn each_row_about_revalidation() {
    let backoff = read().plan().limits.first_backoff.as_millis();
    check(&format!(
        r#"
        an ended answer is served with a mark while one call fetches a new one
        | {ENDED} +1s get=1 mark:status=stale mark:age_ms=301000 mark:reason=revalidating
        | get~stale settle runs=2 open:1 settle get=2 mark:reason=null runs=2
        | #stale=2 #refreshes=1 #misses=1
        many stale answers start one refresh
        | {ENDED} a<64*get a=1 runs=2 #stale=64 open:1 settle get=2 runs=2
        it is off by default
        | get=1 +300s get=2
        it ends with its window, and a later call joins the refresh
        | {ENDED} +60s-1ns get=1 settle +1ns a<get open:1 a=2 runs=2
        a refresh goes on without its caller
        | {ENDED} a<get a! open:1 settle get=2 runs=2
        a write makes the old answer unreachable and the refresh void
        | {ENDED} get=1 settle running=1 a<add open:2 a=3 settle open:1 get=4 mark:reason=null
        a failing refresh leaves the old answer and pauses before the next
        | conf:stale_while_revalidate=60s get=1 server:reads=lost +300s a<10*get a=1 runs=2
        | +{backoff}ms settle get=1 settle runs=3 #failed_refreshes=2 +60s get=unknown
        a refresh times out
        | {ENDED} get=1 settle running=1 +121s settle runs=2 running=0
        stale answers are not shared between principals
        | conf:stale_while_revalidate=60s ann/get=1 +300s bob/get=2 ann/get=1 settle
        | ann/get=3 bob/get=2
        a no-store answer removes the stale one
        | conf:stale_while_revalidate=60s get=1 +300s next:{{"ttlMs":0}} get=1 settle get=3
        only reads are served stale
        | conf:stale_while_revalidate=60s set=1 +5s set=2
        "#
    ))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refresh_has_neither_the_record_nor_the_deadline_of_its_caller() {
    let (bench, _gate) = ended().await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(9);
    let caller = read().with_deadline(deadline.into_std());
    assert_eq!(bench.text(caller).await, "1");
    settle().await;
    let fetched = &bench.mock.seen()[1];
    assert!(fetched.is_background);
    assert!(fetched.record.is_none() && fetched.deadline.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_finds_a_write_in_flight_is_not_sent() {
    let (bench, gate) = ended().await;
    bench.ask(read()).await.unwrap();
    // the refresh has not had its turn yet, and the write goes first
    let mut writing = std::pin::pin!(bench.ask(write()));
    tokio::select! {
        biased;
        _ = &mut writing => panic!("the gate is closed"),
        () = settle() => {}
    }
    let seen = bench.mock.seen();
    let refreshed = seen.iter().any(|call| call.is_background);
    gate.open(1);
    writing.await.unwrap();
    assert_eq!((refreshed, bench.stats().bypassed), (false, 0));
}
