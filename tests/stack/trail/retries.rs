//! Calls of several attempts tell why there were several.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::trail::Stage;
use callward::retry::hedge::HedgeConfig;
use callward::{Caching, Delivery, ErrorKind, Server, Stack, ToolError, ToolOutput};
use callward_testkit::MockService;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{alone, failure, refused, tool};
use crate::trail::bed::{run, stack, stack_with, steps};

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
    let asked: Vec<_> = trail
        .of(Stage::Route)
        .map(|one| one.server.clone())
        .collect();
    assert_ne!(asked[0], asked[1]);
    let steps = steps(&trail).join(" ").replace("@a", "").replace("@b", "");
    let expected = "cache:miss route#1:chosen attempt#1:failed retry#1:retry \
                    route#2:chosen attempt#2:answered answer:answered";
    assert_eq!(steps, expected);
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
        let is_hedged = tool == "read" && hedge.is_some();
        let builder = Stack::builder().hedge(hedge);
        let uncached = |server: Server| server.caching(Caching::Never);
        let stack = stack_with(builder, &servers, uncached).await;
        for _ in 0..20 {
            run(&stack, tool).await;
        }
        let trail = run(&stack, tool).await;
        let steps = steps(&trail).join(" ").replace("@a", "").replace("@b", "");
        let step = "hedge#1:sent attempt#1+:answered hedge#1:won attempt#1:cancelled";
        assert_eq!(steps.contains(step), is_hedged, "{trail}");
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
