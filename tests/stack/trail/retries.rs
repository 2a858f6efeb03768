//! Calls of several attempts tell why there were several.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::cache::CacheConfig;
use callward::core::trail::{Stage, Verdict};
use callward::retry::hedge::HedgeConfig;
use callward::{Delivery, ErrorKind, Stack, ToolError, ToolOutput};
use callward_testkit::MockService;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{alone, failure, refused, tool};
use crate::trail::bed::{run, stack, steps};

/// Two servers of one set, whose n-th call together is answered by the script.
fn two<F>(script: fn(usize) -> F) -> [(&'static str, MockService); 2]
where
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let asked = Arc::new(AtomicUsize::new(0));
    ["a", "b"].map(|id| {
        let asked = asked.clone();
        let next = move || asked.fetch_add(1, Ordering::SeqCst) + 1;
        (id, MockService::new(move |_, _| script(next())))
    })
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_goes_elsewhere_after_a_pause() {
    let servers = two(|n| async move {
        match n {
            1 => Err(refused()),
            _ => Ok(ToolOutput::text("done")),
        }
    });
    let stack = stack(Stack::builder(), &servers).await;
    let trail = run(&stack, "read").await;
    let servers: Vec<_> = trail
        .of(Stage::Route)
        .map(|reported| reported.server.clone().unwrap().to_string())
        .collect();
    let [first, second] = &servers[..] else {
        panic!("{trail}")
    };
    assert_ne!(first, second);
    let expected = format!(
        "cache:miss route#1:chosen@{first} attempt#1:failed@{first} retry#1:retry@{first} \
         route#2:chosen@{second} attempt#2:answered@{second} answer:answered"
    );
    assert_eq!(steps(&trail).join(" "), expected);
    let retry = trail.first(Stage::Retry).unwrap();
    let reason = "connect_failed, delivery not_sent";
    assert!(retry.reason.starts_with(reason), "{retry:?}");
    assert!(retry.waited.is_some_and(|pause| !pause.is_zero()));
}

#[tokio::test(start_paused = true)]
async fn a_hedge_that_answers_first_is_reported_and_no_write_has_one() {
    let hedge = || Some(HedgeConfig::default());
    // by default nothing is hedged
    for (tool, hedge) in [("read", hedge()), ("read", None), ("add", hedge())] {
        let servers = two(|n| async move {
            match n {
                21 => std::future::pending().await,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            Ok(ToolOutput::text("done"))
        });
        let mut cache = CacheConfig::default();
        cache.enabled = false;
        let is_hedged = tool == "read" && hedge.is_some();
        let builder = Stack::builder().hedge(hedge).cache(cache);
        let stack = stack(builder, &servers).await;
        for _ in 0..20 {
            run(&stack, tool).await;
        }
        let began = Instant::now();
        let trail = run(&stack, tool).await;
        // or its attempt timeout
        let is_soon = began.elapsed() < Duration::from_millis(210);
        assert_eq!(is_soon, is_hedged, "{trail}");
        let stages = [Stage::Hedge, Stage::Attempt];
        let reported = trail.decisions.iter();
        let reported = reported.filter(|reported| stages.contains(&reported.stage));
        let reported: Vec<_> = reported
            .map(|reported| (reported.stage, reported.verdict, reported.beside))
            .collect();
        let expected = [
            (Stage::Hedge, Verdict::Sent, false),
            (Stage::Attempt, Verdict::Answered, true),
            (Stage::Hedge, Verdict::Won, false),
            (Stage::Attempt, Verdict::Cancelled, false),
        ];
        assert_eq!(reported == expected, is_hedged, "{trail}");
        let stats = stack.hedge_stats();
        let count = u64::from(is_hedged);
        assert_eq!((stats.sent, stats.won), (count, count));
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_counts_against_the_rate() {
    let service = MockService::new(|_, n| async move {
        match n % 2 {
            1 => Err(failure(ErrorKind::ServerFault, Delivery::Answered)),
            _ => Ok(ToolOutput::text(n.to_string())),
        }
    });
    let hints = json!({"rateLimitHint": 12, "readOnlyHint": true});
    let (stack, _) = alone(Stack::builder(), vec![tool("get_rare", hints)], &service).await;
    // the first call takes both cells of the burst
    stack.call("s.get_rare", json!({"q": 1})).await.unwrap();
    let start = Instant::now();
    stack.call("s.get_rare", json!({"q": 2})).await.unwrap();
    assert!(start.elapsed().as_secs() >= 9, "{:?}", start.elapsed());
}
