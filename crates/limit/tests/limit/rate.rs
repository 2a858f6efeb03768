//! The rate limits, on a paused clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Caller, Delivery, ErrorKind, Principal, Tool, ToolCall, ToolError, ToolOutput,
};
use callward_limit::{RateLimit, RateLimitConfig, RateLimitLayer, RateSubject};
use callward_testkit::{MockService, ToolBuilder, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, advance};
use tower::{Layer, ServiceExt};

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Twelve calls a minute: two at once, then one every five seconds.
fn limited(name: &str) -> ToolBuilder {
    tool(name).hint(|hints| hints.rate_limit_hint = Some(12.0))
}

fn slow(name: &str) -> Arc<Tool> {
    limited(name).build()
}

fn search() -> ToolCall {
    call(&slow("search"), json!({}))
}

fn by(principal: &str, tool: &Arc<Tool>) -> ToolCall {
    let caller = Caller::new(Principal::new(principal));
    call(tool, json!({})).with_caller(Arc::new(caller))
}

fn within(secs: f64, call: ToolCall) -> ToolCall {
    call.with_deadline((Instant::now() + Duration::from_secs_f64(secs)).into_std())
}

/// A limit, and the service behind it.
struct Bench {
    limit: RateLimit<MockService>,
    layer: RateLimitLayer,
    service: MockService,
    start: Instant,
}

impl Bench {
    fn with(change: impl FnOnce(&mut RateLimitConfig)) -> Self {
        let mut config = RateLimitConfig::default();
        change(&mut config);
        let layer = RateLimitLayer::new(config).unwrap();
        let service = MockService::counting();
        Self {
            limit: layer.layer(service.clone()),
            layer,
            service,
            start: Instant::now(),
        }
    }

    /// Its burst is used up.
    fn used() -> Self {
        let bench = Self::with(|_| {});
        let _passed = [0, 1].map(|_| bench.begin(search()));
        assert_eq!(bench.service.started(), 2);
        bench
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
        let all = self.layer.snapshot();
        all.iter().map(|status| status.waiting).sum()
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

#[tokio::test(start_paused = true)]
async fn calls_over_the_rate_of_their_tool_wait_in_order() {
    let bench = Bench::with(|_| {});
    let calls = [0; 6].map(|_| bench.begin(search()));
    assert_eq!((bench.service.started(), bench.waiting()), (2, 4));
    let timed = calls.into_iter().map(|call| async {
        let output = call.await.unwrap();
        (output.to_text(), bench.now())
    });
    let expected = [(1, 0), (2, 0), (3, 5), (4, 10), (5, 15), (6, 20)];
    let expected: Vec<_> = expected.map(|(n, at)| (n.to_string(), at)).into();
    assert_eq!(join_all(timed).await, expected);
    let status = &bench.layer.snapshot()[..];
    let [status] = status else {
        panic!("{status:?}")
    };
    assert_eq!((status.waiting, status.waited, status.refused), (0, 4, 0));
    assert_eq!(status.calls_per_minute, 12.0);
    assert_eq!(status.subject.to_string(), "test::search");
    // a token is there, and its call is not polled yet: none overtakes it
    let first = bench.begin(search());
    advance(secs(6)).await;
    let second = bench.begin(search());
    assert_eq!(bench.waiting(), 2);
    assert_eq!(first.await.unwrap().to_text(), "7");
    assert_eq!(second.await.unwrap().to_text(), "8");
    // after a pause, no more than the burst passes
    advance(secs(3600)).await;
    let _all = [0, 1, 2].map(|_| bench.begin(search()));
    assert_eq!((bench.service.started(), bench.waiting()), (10, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_is_too_late_is_refused_with_retry_after() {
    let bench = Bench::used();
    let _in_line = [0, 1].map(|_| bench.begin(search()));
    advance(secs(1)).await;
    // its turn is in 14 s: at 15 s, behind those at 5 s and 10 s
    let error = bench.begin(within(13.9, search())).await.unwrap_err();
    assert_eq!(bench.now(), 1);
    assert_eq!(error.kind, ErrorKind::RateLimited);
    assert_eq!(error.delivery, Delivery::NotSent);
    assert_eq!(error.retry_after, Some(secs(14)));
    for part in ["12 calls a minute", "test::search", "14s"] {
        assert!(error.message.contains(part), "{error}");
    }
    assert_eq!((bench.service.started(), bench.waiting()), (2, 2));
    let _just = bench.begin(within(14.0, search()));
    assert_eq!(bench.waiting(), 3);
}

#[tokio::test(start_paused = true)]
async fn max_wait_and_estimated_duration_bound_the_wait() {
    let bench = Bench::with(|config| config.max_wait = secs(5));
    let _calls = [0, 1, 2].map(|_| bench.begin(search()));
    let error = bench.begin(search()).await.unwrap_err();
    assert_eq!(error.retry_after, Some(secs(10)));

    let bench = Bench::used();
    // its turn is 5 s away
    let two_seconds = limited("search").hint(|hints| hints.estimated_duration = Some(2000.0));
    let takes_two_seconds = two_seconds.build();
    for (deadline, passes) in [(6.9, false), (7.1, true)] {
        let call = within(deadline, call(&takes_two_seconds, json!({})));
        let answer = bench.begin(call).await;
        assert_eq!(answer.is_ok(), passes, "{deadline}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_uses_no_token_and_the_queue_moves_up() {
    // the first holds the turn and sleeps, or its timer has fired and it is not polled
    for dropped_at in [3, 5] {
        let bench = Bench::used();
        let [first, second, third] = [0, 1, 2].map(|_| bench.begin(search()));
        advance(secs(dropped_at)).await;
        drop(first);
        drop(second);
        assert_eq!(bench.waiting(), 1);
        third.await.unwrap();
        assert_eq!(bench.now(), 5, "{dropped_at}");
        assert_eq!((bench.service.started(), bench.waiting()), (3, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unpolled_waiter_keeps_no_other_beyond_its_deadline() {
    let bench = Bench::used();
    let held = bench.begin(search());
    let error = bench.begin(within(12.0, search())).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimited);
    assert_eq!(bench.now(), 12);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn tools_and_sets_do_not_share_a_limit() {
    let bench = Bench::with(|config| config.max_wait = Duration::ZERO);
    let elsewhere = limited("a").set("elsewhere").build();
    for tool in [slow("a"), slow("b"), elsewhere] {
        for _ in 0..2 {
            bench.begin(by("ada", &tool)).await.unwrap();
        }
        assert!(bench.begin(by("bob", &tool)).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_for_all_calls_is_shared_by_all() {
    let bench = Bench::with(|config| {
        (config.tools, config.in_all) = (false, Some(6.0));
        config.max_wait = Duration::ZERO;
    });
    bench.begin(by("ada", &slow("a"))).await.unwrap();
    let error = bench.begin(by("bob", &slow("b"))).await.unwrap_err();
    assert_eq!(error.retry_after, Some(secs(10)));
    assert!(error.message.contains("all calls"), "{error}");
    let status = bench.layer.snapshot();
    assert_eq!((status.len(), &status[0].subject), (1, &RateSubject::InAll));
    assert_eq!(status[0].refused, 1);
    advance(secs(10)).await;
    bench.begin(by("bob", &slow("b"))).await.unwrap();
    // without it, and without the rates of tools, nothing is limited
    let bench = Bench::with(|config| config.tools = false);
    for _ in 0..100 {
        bench.begin(search()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_kept_are_bounded_and_full_buckets_go_first() {
    const MAX: usize = 10_000;
    let bench = Bench::with(|_| {});
    let pass = |name: &str| {
        let call = call(&slow(name), json!({}));
        assert!(bench.begin(call).now_or_never().is_some());
    };
    (0..2).for_each(|_| pass("patient"));
    let waits = bench.begin(call(&slow("patient"), json!({})));
    (0..MAX + 1000).for_each(|n| pass(&format!("t{n}")));
    assert!(bench.layer.snapshot().len() <= MAX);
    assert_eq!(bench.waiting(), 1, "a limit with a waiting call is kept");
    waits.await.unwrap();
    assert_eq!(bench.now(), 5);

    advance(secs(60)).await;
    (0..2).for_each(|_| pass("recent"));
    (0..MAX - 500).for_each(|n| pass(&format!("new{n}")));
    let _again = bench.begin(call(&slow("recent"), json!({})));
    assert_eq!(bench.waiting(), 1, "a bucket that is not full is kept");
}

#[tokio::test(start_paused = true)]
async fn retain_sets_drops_limits_of_other_sets_without_waiters() {
    let bench = Bench::with(|_| {});
    let mut running = Vec::new();
    for (set, calls) in [("gone", 1), ("busy", 3), ("kept", 1)] {
        let tool = limited("get").set(set).build();
        running.extend((0..calls).map(|_| bench.begin(by("anna", &tool))));
    }
    let retained = || {
        bench.layer.retain_sets(|set| set.as_str() == "kept");
        let all = bench.layer.snapshot().into_iter();
        let all: Vec<_> = all.map(|one| one.subject.to_string()).collect();
        all.join(" ")
    };
    assert_eq!(bench.layer.snapshot().len(), 3);
    // one call waits its turn at the busy one
    assert_eq!(retained(), "busy::get kept::get");
    for answer in join_all(running).await {
        answer.unwrap();
    }
    assert_eq!(retained(), "kept::get");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Calls come, wait, and give up as chance has it.
    #[test]
    fn no_window_has_more_calls_than_rate_and_burst(
        arrivals in prop::collection::vec((0_u64..4000, prop::option::of(0_u64..30_000)), 1..80),
        per_minute in 6_u32..120,
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let bench = Bench::with(|_| {});
            let rate = f64::from(per_minute);
            let tool = tool("x").hint(|hints| hints.rate_limit_hint = Some(rate)).build();
            let start = Instant::now();
            let (mut at, mut patient) = (0, 0);
            let calls: Vec<_> = arrivals.into_iter().map(|(pause, gives_up)| {
                at += pause;
                patient += usize::from(gives_up.is_none());
                let (limit, tool) = (bench.limit.clone(), tool.clone());
                async move {
                    tokio::time::sleep(Duration::from_millis(at)).await;
                    let patience = gives_up.map_or(Duration::MAX, Duration::from_millis);
                    let run = limit.oneshot(call(&tool, json!({})));
                    let result = tokio::time::timeout(patience, run).await.ok()?;
                    Some((gives_up.is_none(), result.is_ok().then(|| start.elapsed())))
                }
            }).collect();
            let ends = join_all(calls).await;
            // refused or passed, but never stuck
            let ended = ends.iter().flatten();
            prop_assert_eq!(ended.clone().filter(|(patient, _)| *patient).count(), patient);
            prop_assert_eq!(bench.waiting(), 0);
            let mut sent: Vec<_> = ended.filter_map(|(_, sent)| *sent).collect();
            sent.sort_unstable();
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
