//! Which reads are answered from the cache, and for how long.

use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::{Bench, by, failure, get, read, set, write};
use callward_cache::{BypassReason, CacheConfig, CacheLayer, Partition};
use callward_core::{
    CacheStatus, CallRecord, Delivery, ReplicaSetId, SecurityLevel, ToolCall, ToolError, ToolOutput,
};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Layer, Service, ServiceExt};

/// Makes a call and returns what the cache noted in its record.
async fn status(bench: &Bench, call: ToolCall) -> CacheStatus {
    let record = Arc::new(CallRecord::new());
    bench.text(call.with_record(record.clone())).await;
    record.cache()
}

#[tokio::test(start_paused = true)]
async fn the_same_read_is_answered_with_the_same_bytes() {
    let raw = r#"{"content":[], "n":1e2, "n2" : 9007199254740993}"#;
    let bench = Bench::new(MockService::sequence(vec![Ok(
        ToolOutput::from_json(raw).unwrap()
    )]));
    for _ in 0..2 {
        assert_eq!(&bench.ask(read()).await.unwrap().body()[..], raw.as_bytes());
    }
    assert_eq!(bench.mock.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_entry_expires_exactly_by_its_plan() {
    let bench = Bench::new(MockService::counting());
    assert_eq!(bench.text(read()).await, "1");
    tokio::time::advance(Duration::from_secs(300) - Duration::from_nanos(1)).await;
    assert_eq!(bench.text(read()).await, "1");
    tokio::time::advance(Duration::from_nanos(1)).await;
    assert_eq!(bench.text(read()).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_hit_does_not_extend_a_lifetime() {
    let bench = Bench::new(MockService::counting());
    for expected in ["1", "1", "1", "2"] {
        assert_eq!(bench.text(read()).await, expected);
        tokio::time::advance(Duration::from_secs(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn equal_arguments_share_a_result_in_any_textual_form() {
    let bench = Bench::new(MockService::counting());
    let ask = |arguments: &'static str| bench.text(ToolCall::new(get(), arguments));
    assert_eq!(ask(r#"{"a":1,"b":"é"}"#).await, "1");
    assert_eq!(ask(r#"{ "b" : "\u00e9" , "a" : 1 }"#).await, "1");
    assert_eq!(ask(r#"{"a":"1","b":"é"}"#).await, "2");
    assert_eq!(ask(r#"{"a":9007199254740992}"#).await, "3");
    assert_eq!(ask(r#"{"a":9007199254740993}"#).await, "4");
    assert_eq!(ask("{}").await, "5");
    assert_eq!(ask("").await, "5");
}

#[tokio::test(start_paused = true)]
async fn ambiguous_arguments_bypass_the_cache() {
    let bench = Bench::new(MockService::counting());
    for expected in ["1", "2"] {
        let twice = ToolCall::new(get(), r#"{"a":1,"a":2}"#);
        assert_eq!(bench.text(twice).await, expected);
    }
    assert_eq!(bench.stats().bypassed, 2);
}

#[tokio::test(start_paused = true)]
async fn principals_do_not_share_results() {
    let bench = Bench::new(MockService::counting());
    assert_eq!(bench.text(by("ann", read())).await, "1");
    assert_eq!(bench.text(by("bob", read())).await, "2");
    assert_eq!(bench.text(by("ann", read())).await, "1");
}

#[tokio::test(start_paused = true)]
async fn sharing_is_opt_in_and_never_for_restricted_tools_or_writes() {
    let mut config = CacheConfig::default();
    config.partition = Partition::Shared;
    let bench = Bench::with(config, MockService::counting());
    assert_eq!(bench.text(by("ann", read())).await, "1");
    assert_eq!(bench.text(by("bob", read())).await, "1");

    let secret = tool("secret")
        .read_only()
        .hint(|hints| hints.security_level = Some(SecurityLevel::Restricted))
        .build();
    assert_eq!(bench.text(by("ann", call(&secret, json!({})))).await, "2");
    assert_eq!(bench.text(by("bob", call(&secret, json!({})))).await, "3");
    assert_eq!(bench.text(by("ann", call(&secret, json!({})))).await, "2");

    assert_eq!(bench.text(by("ann", set(1))).await, "4");
    assert_eq!(bench.text(by("bob", set(1))).await, "5");
}

#[tokio::test(start_paused = true)]
async fn restricted_reads_of_two_principals_do_not_join() {
    let mut config = CacheConfig::default();
    config.partition = Partition::Shared;
    let (mock, gate) = MockService::gated();
    let bench = Bench::with(config, mock);
    let secret = tool("secret")
        .read_only()
        .hint(|hints| hints.security_level = Some(SecurityLevel::Restricted))
        .build();
    let ann = bench.start(by("ann", call(&secret, json!({})))).await;
    let bob = bench.start(by("bob", call(&secret, json!({})))).await;
    assert_eq!(bench.mock.running(), 2);
    gate.open(2);
    assert_ne!(ann.await.unwrap().unwrap(), bob.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn only_complete_successes_within_the_size_limit_are_kept() {
    let round = r#"{"resultType":"input_required","content":[]}"#;
    let task = r#"{"resultType":"task","content":[]}"#;
    let answers: Vec<Result<ToolOutput, ToolError>> = vec![
        Ok(ToolOutput::error_text("the tool failed")),
        Err(failure(Delivery::Answered)),
        Err(failure(Delivery::NotSent)),
        Err(failure(Delivery::Unknown)),
        Ok(ToolOutput::from_json(round).unwrap()),
        Ok(ToolOutput::from_json(task).unwrap()),
        Ok(ToolOutput::text("x".repeat(200))),
    ];
    for answer in answers {
        let mut config = CacheConfig::default();
        config.max_item_bytes = 100;
        let first = answer.clone();
        let mock = MockService::new(move |_, n| {
            let after = Ok(ToolOutput::text("good"));
            ready(if n == 1 { first.clone() } else { after })
        });
        let bench = Bench::with(config, mock);
        assert_eq!(bench.ask(read()).await.is_ok(), answer.is_ok());
        assert_eq!(bench.stats().entries, 0, "{answer:?}");
        assert_eq!(bench.text(read()).await, "good", "{answer:?}");
        assert_eq!(bench.text(read()).await, "good");
        assert_eq!((bench.mock.started(), bench.stats().stored), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_size_limit_is_inclusive() {
    let output = ToolOutput::text("x");
    for (limit, stored) in [
        (output.body().len() as u64, 1),
        (output.body().len() as u64 - 1, 0),
    ] {
        let mut config = CacheConfig::default();
        config.max_item_bytes = limit;
        let bench = Bench::with(config, MockService::sequence(vec![Ok(output.clone())]));
        bench.ask(read()).await.unwrap();
        assert_eq!(bench.stats().stored, stored);
    }
}

#[tokio::test(start_paused = true)]
async fn the_byte_bound_is_kept() {
    let mut config = CacheConfig::default();
    config.max_bytes = 50_000;
    let mock = MockService::new(|_, _| ready(Ok(ToolOutput::text("x".repeat(1000)))));
    let bench = Bench::with(config, mock);
    for id in 0..200 {
        bench.ask(call(&get(), json!({"id": id}))).await.unwrap();
    }
    let stats = bench.stats();
    assert!(stats.bytes <= 50_000, "{stats:?}");
    assert!(stats.entries > 10, "{stats:?}");
    assert_eq!(stats.evicted, 200 - stats.entries);
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

#[tokio::test(start_paused = true)]
async fn a_disabled_cache_keeps_nothing() {
    let mut config = CacheConfig::default();
    config.enabled = false;
    let bench = Bench::with(config, MockService::counting());
    for expected in ["1", "2"] {
        assert_eq!(bench.text(read()).await, expected);
    }
    assert_eq!((bench.stats().bypassed, bench.stats().entries), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_pinned_call_bypasses_the_cache() {
    let bench = Bench::new(MockService::counting());
    let pinned = |call: ToolCall| call.pinned_to("replica".parse().unwrap());
    assert_eq!(status(&bench, read()).await, CacheStatus::Miss);
    assert_eq!(status(&bench, pinned(read())).await, CacheStatus::Bypass);
    assert_eq!(bench.text(pinned(read())).await, "3");
    // and its answer is not shared either
    assert_eq!(bench.text(read()).await, "1");
    let bypasses = bench.stats().bypasses;
    assert_eq!(bypasses.get(BypassReason::Pinned), 2);

    for expected in ["4", "5"] {
        assert_eq!(bench.text(pinned(set(1))).await, expected);
    }
    assert_eq!(bench.text(read()).await, "6", "a pinned write is one");
}

#[tokio::test(start_paused = true)]
async fn each_call_is_counted_and_noted_once() {
    let bench = Bench::new(MockService::counting());
    assert_eq!(status(&bench, read()).await, CacheStatus::Miss);
    assert_eq!(status(&bench, read()).await, CacheStatus::Hit);
    assert_eq!(status(&bench, write()).await, CacheStatus::Invalidated);
    assert_eq!(status(&bench, read()).await, CacheStatus::Miss);
    assert_eq!(status(&bench, set(1)).await, CacheStatus::Invalidated);
    assert_eq!(status(&bench, set(1)).await, CacheStatus::Hit);
    let odd = ToolCall::new(get(), r#"{"a":1,"a":1}"#);
    assert_eq!(status(&bench, odd).await, CacheStatus::Bypass);
    let stats = bench.stats();
    assert_eq!((stats.hits, stats.misses, stats.joined), (2, 2, 0));
    assert_eq!(
        (stats.stored, stats.invalidations, stats.bypassed),
        (3, 2, 1)
    );
    assert_eq!((stats.entries, stats.evicted), (3, 0));
    assert!(stats.bytes > 0);
}

#[tokio::test(start_paused = true)]
async fn a_purge_removes_the_results_it_names() {
    let bench = Bench::new(MockService::counting());
    let other = call(&tool("get").set("other").read_only().build(), json!({}));
    let both = async |first: &str, second: &str| {
        assert_eq!(bench.text(read()).await, first);
        assert_eq!(bench.text(other.clone()).await, second);
    };
    both("1", "2").await;
    bench.handle.purge_set(&ReplicaSetId::new("test").unwrap());
    both("3", "2").await;
    bench.handle.purge_all();
    assert_eq!(bench.stats().entries, 0);
    both("4", "5").await;
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_read_in_flight_during_a_purge_is_not_kept() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let running = bench.start(read()).await;
    bench.handle.purge_all();
    gate.open(2);
    assert_eq!(running.await.unwrap().unwrap().to_text(), "1");
    assert_eq!(bench.text(read()).await, "2");
}
