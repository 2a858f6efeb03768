//! The rate limits, on a paused clock.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Caller, Delivery, ErrorKind, Principal, Tool, ToolCall, ToolError, ToolOutput,
};
use callward_limit::{RateLimit, RateLimitConfig, RateLimitLayer, RateSubject};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, advance};
use tower::{Layer, ServiceExt};

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// Twelve calls a minute: two at once, then one every five seconds.
fn slow(name: &str) -> Arc<Tool> {
    tool(name)
        .hint(|hints| hints.rate_limit_hint = Some(12.0))
        .build()
}

fn by(principal: &str, tool: &Arc<Tool>) -> ToolCall {
    let caller = Caller::new(Principal::new(principal));
    call(tool, json!({})).with_caller(Arc::new(caller))
}

fn within(secs: f64) -> std::time::Instant {
    (Instant::now() + Duration::from_secs_f64(secs)).into_std()
}

/// A limit, and the service behind it.
struct Bench {
    limit: RateLimit<MockService>,
    layer: RateLimitLayer,
    service: MockService,
}

impl Bench {
    fn new(config: RateLimitConfig) -> Self {
        let layer = RateLimitLayer::new(config).unwrap();
        let service = MockService::counting();
        Self {
            limit: layer.layer(service.clone()),
            layer,
            service,
        }
    }

    /// Polls a call once: it passes, is refused, or waits in the queue.
    fn begin(&self, call: ToolCall) -> Answer {
        let mut answer: Answer = Box::pin(self.limit.clone().oneshot(call));
        match answer.as_mut().now_or_never() {
            Some(result) => Box::pin(std::future::ready(result)),
            None => answer,
        }
    }

    fn waiting(&self) -> usize {
        let all = self.layer.limits().snapshot();
        all.iter().map(|status| status.waiting).sum()
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new(RateLimitConfig::default())
    }
}

#[tokio::test(start_paused = true)]
async fn calls_over_the_rate_of_their_tool_wait_in_order() {
    let bench = Bench::default();
    let tool = slow("search");
    let start = Instant::now();
    let calls = [0; 6].map(|_| bench.begin(call(&tool, json!({}))));
    assert_eq!((bench.service.started(), bench.waiting()), (2, 4));
    let timed = calls.into_iter().map(|call| async move {
        let output = call.await.unwrap();
        (output.to_text(), start.elapsed().as_secs())
    });
    let expected = [(1, 0), (2, 0), (3, 5), (4, 10), (5, 15), (6, 20)];
    let expected: Vec<_> = expected.map(|(n, at)| (n.to_string(), at)).into();
    assert_eq!(join_all(timed).await, expected);
    let status = bench.layer.limits().snapshot();
    let [status] = &status[..] else {
        panic!("{status:?}")
    };
    assert_eq!((status.waiting, status.waited, status.refused), (0, 4, 0));
    assert_eq!(status.calls_per_minute, 12.0);
    assert_eq!(status.subject.to_string(), "test::search");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_is_too_late_is_refused_with_retry_after() {
    let bench = Bench::default();
    let tool = slow("search");
    let start = Instant::now();
    let _passed = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    let _in_line = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    advance(Duration::from_secs(1)).await;
    // its turn is in 14 s: at 15 s, behind those at 5 s and 10 s
    let late = call(&tool, json!({})).with_deadline(within(13.9));
    let error = bench.begin(late).await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 1);
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(14)));
    for said in ["12 calls a minute", "test::search", "14s"] {
        assert!(error.message().contains(said), "{error}");
    }
    assert_eq!((bench.service.started(), bench.waiting()), (2, 2));
    let just = call(&tool, json!({})).with_deadline(within(14.0));
    let just = bench.begin(just);
    assert_eq!(bench.waiting(), 3);
    drop(just);
}

#[tokio::test(start_paused = true)]
async fn max_wait_and_estimated_duration_bound_the_wait() {
    let config = RateLimitConfig::default().with_max_wait(Duration::from_secs(5));
    let bench = Bench::new(config);
    let search = slow("search");
    let _calls = [0, 1, 2].map(|_| bench.begin(call(&search, json!({}))));
    let error = bench.begin(call(&search, json!({}))).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));

    let bench = Bench::default();
    let _calls = [0, 1].map(|_| bench.begin(call(&search, json!({}))));
    // its turn is 5 s away
    let takes_two_seconds = tool("search")
        .hint(|hints| hints.rate_limit_hint = Some(12.0))
        .hint(|hints| hints.estimated_duration = Some(2000.0))
        .build();
    for (deadline, passes) in [(6.9, false), (7.1, true)] {
        let call = call(&takes_two_seconds, json!({})).with_deadline(within(deadline));
        let answer = bench.begin(call).await;
        assert_eq!(answer.is_ok(), passes, "{deadline}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_uses_no_token_and_the_queue_moves_up() {
    let bench = Bench::default();
    let tool = slow("search");
    let start = Instant::now();
    let _passed = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    let [first, second, third] = [0, 1, 2].map(|_| bench.begin(call(&tool, json!({}))));
    advance(Duration::from_secs(3)).await;
    drop(first); // it held the turn, and slept
    drop(second);
    assert_eq!(bench.waiting(), 1);
    third.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
    assert_eq!((bench.service.started(), bench.waiting()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_dropped_at_its_turn_passes_it_on() {
    let bench = Bench::default();
    let tool = slow("search");
    let start = Instant::now();
    let _passed = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    let [first, second] = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    advance(Duration::from_secs(5)).await; // the timer fires, and the call is not polled
    drop(first);
    second.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_unpolled_waiter_keeps_no_other_beyond_its_deadline() {
    let bench = Bench::default();
    let tool = slow("search");
    let start = Instant::now();
    let _passed = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    let held = bench.begin(call(&tool, json!({})));
    let second = bench.begin(call(&tool, json!({})).with_deadline(within(12.0)));
    let error = second.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(start.elapsed().as_secs(), 12);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn no_call_overtakes_the_queue() {
    let bench = Bench::default();
    let tool = slow("search");
    let _passed = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    let first = bench.begin(call(&tool, json!({})));
    advance(Duration::from_secs(6)).await; // a token is there, and its call is not polled yet
    let second = bench.begin(call(&tool, json!({})));
    assert_eq!(bench.waiting(), 2);
    assert_eq!(first.await.unwrap().to_text(), "3");
    assert_eq!(second.await.unwrap().to_text(), "4");
}

#[tokio::test(start_paused = true)]
async fn after_a_pause_no_more_than_the_burst_passes() {
    let bench = Bench::default();
    let tool = slow("search");
    let _all = [0, 1].map(|_| bench.begin(call(&tool, json!({}))));
    advance(Duration::from_secs(3600)).await;
    let _all = [0, 1, 2].map(|_| bench.begin(call(&tool, json!({}))));
    assert_eq!((bench.service.started(), bench.waiting()), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn tools_principals_and_sets_do_not_share_a_limit() {
    let config = RateLimitConfig::default()
        .with_per_principal(Some(60.0))
        .with_max_wait(Duration::ZERO);
    let bench = Bench::new(config);
    let elsewhere = tool("a").set("elsewhere");
    let elsewhere = elsewhere.hint(|hints| hints.rate_limit_hint = Some(12.0));
    for tool in [slow("a"), slow("b"), elsewhere.build()] {
        for _ in 0..2 {
            bench.begin(by("ada", &tool)).await.unwrap();
        }
        assert!(bench.begin(by("ada", &tool)).await.is_err());
    }
    let free = tool("free").build();
    // a burst of ten each; a call that its tool refused used one up
    bench.begin(by("ada", &free)).await.unwrap();
    let error = bench.begin(by("ada", &free)).await.unwrap_err();
    assert!(error.message().contains("principal ada"), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    bench.begin(by("bob", &free)).await.unwrap();
}

fn tool_without_limit() -> Arc<Tool> {
    tool("free").build()
}

#[tokio::test(start_paused = true)]
async fn a_limit_for_all_calls_is_shared_by_all() {
    let config = RateLimitConfig::for_server(6.0).with_max_wait(Duration::ZERO);
    let bench = Bench::new(config);
    bench.begin(by("ada", &slow("a"))).await.unwrap();
    let error = bench.begin(by("bob", &slow("b"))).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
    assert!(error.message().contains("all calls"), "{error}");
    let status = bench.layer.limits().snapshot();
    let [status] = &status[..] else {
        panic!("{status:?}")
    };
    assert_eq!(status.subject, RateSubject::InAll);
    assert_eq!(status.refused, 1);
    advance(Duration::from_secs(10)).await;
    bench.begin(by("bob", &slow("b"))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_rates_of_tools_can_be_disabled() {
    let bench = Bench::new(RateLimitConfig::default().with_tools(false));
    for _ in 0..100 {
        bench.begin(call(&slow("a"), json!({}))).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn max_keys_evicts_full_buckets_first_and_none_with_waiters() {
    let config = RateLimitConfig::default()
        .with_per_principal(Some(12.0))
        .with_max_keys(100);
    let bench = Bench::new(config);
    let free = tool_without_limit();
    for _ in 0..2 {
        bench.begin(by("patient", &free)).await.unwrap();
    }
    let waits = bench.begin(by("patient", &free));
    for n in 0..1000 {
        bench.begin(by(&n.to_string(), &free)).await.unwrap();
        assert!(bench.layer.limits().snapshot().len() <= 100);
    }
    assert_eq!(bench.waiting(), 1);
    let start = Instant::now();
    waits.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);

    // full buckets go first
    advance(Duration::from_secs(60)).await;
    bench.begin(by("recent", &free)).await.unwrap();
    bench.begin(by("recent", &free)).await.unwrap();
    for n in 0..50 {
        bench.begin(by(&format!("new {n}"), &free)).await.unwrap();
    }
    let again = bench.begin(by("recent", &free));
    assert_eq!(bench.waiting(), 1, "its bucket is kept");
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_runs_on_the_ready_service() {
    // the mock panics if it is called unready
    let bench = Bench::default();
    let tool = slow("search");
    let calls = (0..4).map(|_| bench.limit.clone().oneshot(call(&tool, json!({}))));
    assert!(join_all(calls).await.iter().all(Result::is_ok));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Calls come, wait, and give up as chance has it.
    #[test]
    fn no_window_has_more_calls_than_rate_and_burst(
        arrivals in prop::collection::vec((0_u64..4000, prop::option::of(0_u64..30_000)), 1..80),
        per_minute in 6_u32..120,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let bench = Bench::default();
            let rate = f64::from(per_minute);
            let tool = tool("x").hint(|hints| hints.rate_limit_hint = Some(rate)).build();
            let start = Instant::now();
            let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
            let mut at = 0;
            let mut patient = 0;
            let calls: Vec<_> = arrivals.into_iter().map(|(pause, gives_up)| {
                at += pause;
                patient += usize::from(gives_up.is_none());
                let (limit, tool, sent) = (bench.limit.clone(), tool.clone(), sent.clone());
                async move {
                    tokio::time::sleep(Duration::from_millis(at)).await;
                    let run = async {
                        let result = limit.oneshot(call(&tool, json!({}))).await;
                        if result.is_ok() {
                            sent.lock().unwrap().push(start.elapsed());
                        }
                        result
                    };
                    match gives_up {
                        Some(after) => {
                            let _ = tokio::time::timeout(Duration::from_millis(after), run).await;
                            None
                        }
                        None => Some(run.await),
                    }
                }
            }).collect();
            let ends = join_all(calls).await;
            // refused or passed, but never stuck
            prop_assert_eq!(ends.iter().flatten().count(), patient);
            prop_assert_eq!(bench.waiting(), 0);
            let sent = sent.lock().unwrap().clone();
            let burst = (rate / 6.0 + 1e-9) as usize;
            for (n, first) in sent.iter().enumerate() {
                for (more, last) in sent.iter().enumerate().skip(n) {
                    let window = (*last - *first).as_secs_f64();
                    let most = burst.max(1) as f64 + window * rate / 60.0 + 1e-6;
                    prop_assert!((more - n + 1) as f64 <= most, "{} in {window} s", more - n + 1);
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn retain_sets_drops_limits_of_other_sets_without_waiters() {
    let bench = Bench::new(RateLimitConfig::default());
    let of_set = |set: &str| {
        tool("get")
            .set(set)
            .hint(|hints| hints.rate_limit_hint = Some(12.0))
            .build()
    };
    let (gone, busy, kept) = (of_set("gone"), of_set("busy"), of_set("kept"));
    let mut running = Vec::new();
    for (tool, calls) in [(&gone, 1), (&busy, 3), (&kept, 1)] {
        for _ in 0..calls {
            running.push(bench.begin(by("anna", tool)));
        }
    }
    let sets = || {
        let all = bench.layer.limits().snapshot().into_iter();
        let set = |subject| match subject {
            RateSubject::Tool { set, .. } => set.to_string(),
            other => other.to_string(),
        };
        all.map(|one| set(one.subject)).collect::<Vec<_>>()
    };
    assert_eq!(sets(), ["busy", "gone", "kept"]);
    bench
        .layer
        .limits()
        .retain_sets(|set| set.as_str() == "kept");
    assert_eq!(sets(), ["busy", "kept"], "one call waits its turn there");
    for answer in join_all(running).await {
        answer.unwrap();
    }
    bench
        .layer
        .limits()
        .retain_sets(|set| set.as_str() == "kept");
    assert_eq!(sets(), ["kept"]);
}
