//! Which reads are answered from the cache, and for how long.

use std::task::{Context, Poll, Waker};

use callward_cache::CacheLayer;
use callward_core::{ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call};
use serde_json::json;
use tower::{Layer, Service, ServiceExt};

use crate::common::{Bench, get, read};
use crate::script::check;

#[tokio::test(start_paused = true)]
async fn the_same_read_is_answered_with_the_same_bytes() {
    let raw = r#"{"content":[], "n":1e2, "n2" : 9007199254740993}"#;
    let output = ToolOutput::from_json(raw).unwrap();
    let bench = Bench::new(MockService::sequence(vec![Ok(output)]));
    for _ in 0..2 {
        assert_eq!(&bench.ask(read()).await.unwrap().body()[..], raw.as_bytes());
    }
    assert_eq!(bench.mock.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_row_about_reads() {
    check(
        r#"
        an entry expires exactly by its plan
        | get=1 +300s-1ns get=1 +1ns get=2
        a hit does not extend a lifetime
        | get=1 +100s get=1 +100s get=1 +100s get=2
        equal arguments share a result in any textual form
        | get:{"a":1,"b":"é"}=1 get:{_"b"_:_"\u00e9"_,_"a"_:_1_}=1 get:{"a":"1","b":"é"}=2
        | get:{"a":9007199254740992}=3 get:{"a":9007199254740993}=4 get:{}=5 get=5
        ambiguous arguments bypass the cache
        | get:{"a":1,"a":2}=1 get:{"a":1,"a":2}=2 get:{"a":1,"a":2}~bypass #bypassed=3
        | get:[~bypass #bypasses.arguments=4
        principals do not share results
        | ann/get=1 bob/get=2 ann/get=1
        sharing is opt-in and never for restricted tools or writes
        | conf:partition=shared ann/get=1 bob/get=1 ann/secret=2 bob/secret=3 ann/secret=2
        | ann/set=4 bob/set=5
        restricted reads of two principals do not join
        | conf:partition=shared server:gate a<ann/secret b<bob/secret running=2 open:2 a=1 b=2
        a disabled cache keeps nothing
        | conf:enabled=false get=1 get=2 #bypassed=2 #entries=0
        a pinned call bypasses the cache, and its answer is not shared
        | get~miss pinned-get~bypass pinned-get=3 get=1 #bypasses.pinned=2
        a pinned write is one
        | get=1 pinned-set=2 pinned-set=3 get=4
        a further round bypasses the cache, and its answer is not shared
        | get~miss round-get~bypass round-get=3 get=1 #bypasses.round=2
        | round-set=4 round-set=5 get=6
        an answer is not kept if the client was asked something for it
        | next:asks asked-get=1 #refusals.asked=1 #entries=0 asked-get=2 asked-get=2
        | next:asks asked-set=3 #refusals.asked=2 asked-set=4 asked-set=4
        the capabilities of its client distinguish a call
        | asked-get=1 get=2 asked-get=1 get=2
        each call is counted and noted once
        | get~miss get~hit add~invalidated get~miss set~invalidated set~hit get:[~bypass
        | #hits=2 #misses=2 #joined=0 #stored=3 #invalidations=2 #bypassed=1 #entries=3 #evicted=0
        a purge removes the results it names
        | get=1 get@other=2 purge:set get=3 get@other=2 purge:all #entries=0 get=4 get@other=5
        the result of a read in flight during a purge is not kept
        | server:gate a<get purge:all open:2 a=1 get=2
        a read that a write overtakes is not kept
        | server:gate a<get b<add open:2 a=1 b=2 #refusals.overtaken=1
        "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_complete_successes_within_the_size_limit_are_kept() {
    for (reply, reason) in [
        ("error", "tool_error"),
        ("answered", "failed"),
        ("unsent", "failed"),
        ("lost", "failed"),
        (r#"{"resultType":"input_required"}"#, "incomplete"),
        (r#"{"resultType":"task"}"#, "incomplete"),
        ("long", "too_large"),
    ] {
        check(&format!(
            "{reply}
            | conf:max_item_bytes=100B next:{reply} get #entries=0 #refusals.{reason}=1
            | get=2 get=2 #stored=1 runs=2"
        ))
        .await;
    }
    let limit = ToolOutput::text("1").body().len();
    for (limit, stored) in [(limit, 1), (limit - 1, 0)] {
        check(&format!(
            "inclusive\n| conf:max_item_bytes={limit}B get=1 #stored={stored}"
        ))
        .await;
    }
}

/// A service that never becomes ready.
#[derive(Debug, Clone)]
struct Full;

impl Service<ToolCall> for Full {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = std::future::Pending<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Pending
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        std::future::pending()
    }
}

#[tokio::test(start_paused = true)]
async fn a_hit_needs_no_capacity_and_no_second_poll() {
    let layer = CacheLayer::default();
    layer
        .layer(MockService::counting())
        .oneshot(read())
        .await
        .unwrap();
    let mut full = layer.layer(Full);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(full.poll_ready(&mut cx).is_ready());
    let mut hit = Box::pin(full.call(read()));
    assert!(hit.as_mut().poll(&mut cx).is_ready());
    let mut miss = Box::pin(full.call(call(&get(), json!({"id": 2}))));
    assert!(miss.as_mut().poll(&mut cx).is_pending());
}
