//! Calls of several attempts tell why there were several.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::trail::{Stage, Verdict};
use callward::retry::hedge::HedgeConfig;
use callward::{Stack, ToolError, ToolOutput};
use callward_testkit::MockService;

use crate::bed::refused;
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
async fn a_second_attempt_that_answers_first_is_told() {
    let servers = two(|n| async move {
        match n {
            21 => std::future::pending().await,
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
        Ok(ToolOutput::text("done"))
    });
    let mut cache = callward::cache::CacheConfig::default();
    cache.enabled = false;
    let builder = Stack::builder().hedge(Some(HedgeConfig::default()));
    let stack = stack(builder.cache(cache), &servers).await;
    for _ in 0..20 {
        run(&stack, "read").await;
    }
    let trail = run(&stack, "read").await;
    let reported: Vec<_> = trail
        .decisions
        .iter()
        .filter(|reported| matches!(reported.stage, Stage::Hedge | Stage::Attempt))
        .map(|reported| (reported.stage, reported.verdict, reported.beside))
        .collect();
    assert_eq!(
        reported,
        [
            (Stage::Hedge, Verdict::Sent, false),
            (Stage::Attempt, Verdict::Answered, true),
            (Stage::Hedge, Verdict::Won, false),
            (Stage::Attempt, Verdict::Cancelled, false),
        ],
        "{trail}"
    );
}
