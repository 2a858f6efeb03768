//! How a call with two attempts ends.

use callward_core::{Delivery, HedgeStatus};
use tower::ServiceExt;

use crate::bed::{ms, read};
use crate::hedge::bed::{Bed, Ended, Fate, answers, name as name_of};

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

#[tokio::test(start_paused = true)]
async fn the_first_answer_wins_and_a_failure_waits_for_the_other_attempt() {
    let fails = |millis| Fate::Fails(ms(millis), Delivery::Unknown);
    let unsent = |millis| Fate::Fails(ms(millis), Delivery::NotSent);
    for (name, first, second, result, took) in [
        ("the first wins", answers(150), answers(1000), "21", 150),
        ("the hedge wins", Fate::Hangs, answers(0), "22", 100),
        ("the first fails", fails(150), answers(1000), "22", 1100),
        ("the hedge fails", answers(1000), fails(10), "21", 1000),
        (
            "both fail",
            fails(150),
            fails(500),
            "attempt 21 failed",
            600,
        ),
        (
            "both fail, the hedge first",
            fails(500),
            fails(10),
            "attempt 21 failed",
            500,
        ),
        // the call was sent
        (
            "the first was not sent",
            unsent(150),
            fails(500),
            "attempt 22 failed",
            600,
        ),
        (
            "the same, later",
            unsent(500),
            fails(10),
            "attempt 22 failed",
            500,
        ),
    ] {
        let (bed, ended) = hedged(first, second).await;
        let text = match &ended.result {
            Ok(output) => output.to_text(),
            Err(error) => {
                assert_eq!(error.delivery(), Delivery::Unknown, "{name}");
                let server = usize::from(result == "attempt 22 failed");
                assert_eq!(error.server(), Some(&name_of(server)), "{name}");
                error.message().to_owned()
            }
        };
        assert_eq!(text, result, "{name}");
        assert!(
            ended.took.abs_diff(ms(took)) <= ms(2),
            "{name}: {:?}",
            ended.took
        );
        let won = text == "22";
        let status = if won {
            HedgeStatus::Won
        } else {
            HedgeStatus::Sent
        };
        assert_eq!(ended.record.hedge(), status, "{name}");
        if name == "the first wins" {
            assert_eq!(bed.servers[1].cancelled(), 1, "the hedge is cancelled");
            let (server, reason) = ended.record.server().unwrap();
            assert_eq!((server, reason), (name_of(0), "answered before its hedge"));
        }
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
    let error = ended.result.unwrap_err();
    assert_eq!(error.message(), "attempt 21 failed");
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
