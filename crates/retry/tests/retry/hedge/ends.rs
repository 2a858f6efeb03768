//! What becomes of the two attempts.

use callward_core::{Delivery, HedgeStatus, ToolError};
use tower::ServiceExt;

use crate::hedge::bed::{Bed, Ended, Fate, answers, ms, name, read};

/// Twenty quick calls, and then one whose two attempts have these fates.
async fn hedged(first: Fate, second: Fate) -> (Bed, Ended) {
    let bed = Bed::new(2, move |n| match n {
        1..=20 => answers(100),
        21 => first,
        _ => second,
    });
    bed.reads(20).await;
    let ended = bed.read().await;
    assert_eq!(bed.running(), 0, "nothing runs on");
    assert_eq!(bed.started(), 22);
    (bed, ended)
}

fn failure(ended: Ended) -> ToolError {
    match ended.result {
        Ok(output) => panic!("answered {}", output.to_text()),
        Err(error) => error,
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_attempt_may_still_win() {
    let (bed, ended) = hedged(answers(150), answers(1000)).await;
    assert_eq!(ended.result.unwrap().to_text(), "21");
    assert_eq!(ended.took, ms(150));
    assert_eq!(bed.servers[1].cancelled(), 1, "the hedge is cancelled");
    assert_eq!(ended.record.hedge(), HedgeStatus::Sent);
    let (server, reason) = ended.record.server().unwrap();
    assert_eq!((server, reason), (name(0), "answered before its hedge"));
}

#[tokio::test(start_paused = true)]
async fn if_the_first_attempt_fails_the_hedge_is_awaited() {
    let fails = Fate::Fails(ms(150), Delivery::Unknown);
    let (_, ended) = hedged(fails, answers(1000)).await;
    assert_eq!(ended.result.unwrap().to_text(), "22");
    assert_eq!(ended.record.hedge(), HedgeStatus::Won);
}

#[tokio::test(start_paused = true)]
async fn if_the_hedge_fails_the_first_attempt_is_awaited() {
    let fails = Fate::Fails(ms(10), Delivery::Unknown);
    let (_, ended) = hedged(answers(1000), fails).await;
    assert_eq!(ended.result.unwrap().to_text(), "21");
    assert_eq!(ended.took, ms(1000));
}

#[tokio::test(start_paused = true)]
async fn if_both_fail_the_first_failure_is_returned() {
    for (first, second) in [(150, 500), (500, 10)] {
        let fails = |millis| Fate::Fails(ms(millis), Delivery::Unknown);
        let (_, ended) = hedged(fails(first), fails(second)).await;
        assert_eq!(failure(ended).message(), "attempt 21 failed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_one_sent_attempt_does_not_end_as_not_sent() {
    // whichever of the two fails first
    for (first, second) in [(150, 500), (500, 10)] {
        let first = Fate::Fails(ms(first), Delivery::NotSent);
        let second = Fate::Fails(ms(second), Delivery::Answered);
        let (_, ended) = hedged(first, second).await;
        let error = failure(ended);
        assert_eq!(error.delivery(), Delivery::Answered);
        assert_eq!(error.server(), Some(&name(1)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_a_hedge_is_due_ends_the_attempt_at_once() {
    let bed = Bed::new(2, |n| match n {
        21 => Fate::Fails(ms(5), Delivery::Unknown),
        _ => answers(100),
    });
    bed.reads(20).await;
    let ended = bed.read().await;
    assert_eq!((ended.took, bed.started()), (ms(5), 21));
    assert_eq!(failure(ended).message(), "attempt 21 failed");
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_the_call_drops_both_attempts() {
    let bed = Bed::new(2, |n| match n {
        1..=20 => answers(100),
        _ => Fate::Hangs,
    });
    bed.reads(20).await;
    let call = bed.service.clone().oneshot(read());
    assert!(tokio::time::timeout(ms(1000), call).await.is_err());
    assert_eq!((bed.started(), bed.cancelled(), bed.running()), (22, 2, 0));
}
