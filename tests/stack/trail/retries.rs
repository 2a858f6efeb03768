//! Calls of several attempts tell why there were several, or why not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::trail::{Stage, Verdict};
use callward::retry::hedge::HedgeConfig;
use callward::{Delivery, ErrorKind, Stack, ToolOutput};
use callward_testkit::MockService;

use crate::trail::bed::{failing, run, stack, steps, why};

/// Two servers, of which the one that is asked first fails so.
async fn two(kind: ErrorKind, delivery: Delivery) -> Stack {
    let asked = Arc::new(AtomicUsize::new(0));
    let service = || {
        let asked = asked.clone();
        MockService::new(move |_, _| {
            let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                match first {
                    true => Err(crate::trail::bed::failure(kind, delivery)),
                    false => Ok(ToolOutput::text("done")),
                }
            }
        })
    };
    stack(Stack::builder(), &[("a", service()), ("b", service())]).await
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_goes_elsewhere_after_a_pause() {
    let stack = two(ErrorKind::ConnectFailed, Delivery::NotSent).await;
    let trail = run(&stack, "read").await;
    let servers: Vec<_> = trail
        .of(Stage::Route)
        .map(|reported| reported.server.clone().unwrap().to_string())
        .collect();
    let [first, second] = &servers[..] else {
        panic!("{trail}")
    };
    assert_ne!(first, second);
    assert_eq!(
        steps(&trail),
        [
            "cache:miss".to_owned(),
            format!("route#1:chosen@{first}"),
            format!("attempt#1:failed@{first}"),
            format!("retry#1:retry@{first}"),
            format!("route#2:chosen@{second}"),
            format!("attempt#2:answered@{second}"),
            "answer:answered".to_owned(),
        ]
    );
    let retry = trail.first(Stage::Retry).unwrap();
    assert!(
        retry
            .reason
            .starts_with("connect_failed, delivery not_sent"),
        "{retry:?}"
    );
    assert!(retry.waited.is_some_and(|pause| !pause.is_zero()));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_may_have_run_is_not_sent_again_and_the_reason_is_told() {
    let stack = two(ErrorKind::ConnectionLost, Delivery::Unknown).await;
    let trail = run(&stack, "add").await;
    let stop = trail.first(Stage::Retry).unwrap();
    assert_eq!(stop.verdict, Verdict::Stop);
    assert!(stop.reason.starts_with("connection_lost: "), "{stop:?}");
    assert_eq!(trail.of(Stage::Attempt).count(), 1);
    assert_eq!(
        why(&trail, Stage::Answer),
        "outcome_unknown, delivery unknown"
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_that_all_fail_end_with_a_reason() {
    let service = failing(9, ErrorKind::ServerFault, Delivery::Answered);
    let stack = stack(Stack::builder(), &[("a", service)]).await;
    let trail = run(&stack, "read").await;
    let verdicts: Vec<_> = trail
        .of(Stage::Retry)
        .map(|reported| reported.verdict)
        .collect();
    assert_eq!(
        verdicts,
        [Verdict::Retry, Verdict::Retry, Verdict::Stop],
        "{trail}"
    );
    assert_eq!(trail.of(Stage::Attempt).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt_that_answers_first_is_told() {
    let asked = Arc::new(AtomicUsize::new(0));
    let service = || {
        let asked = asked.clone();
        MockService::new(move |_, _| {
            let n = asked.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                match n {
                    21 => std::future::pending().await,
                    _ => tokio::time::sleep(Duration::from_millis(100)).await,
                }
                Ok(ToolOutput::text("done"))
            }
        })
    };
    let mut cache = callward::cache::CacheConfig::default();
    cache.enabled = false;
    let builder = Stack::builder()
        .hedge(Some(HedgeConfig::default()))
        .cache(cache);
    let stack = stack(builder, &[("a", service()), ("b", service())]).await;
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
