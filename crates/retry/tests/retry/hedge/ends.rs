//! How a call with two attempts ends.

use callward_core::{Delivery, HedgeStatus};
use tower::ServiceExt;

use crate::bed::{ms, read, rows};
use crate::hedge::bed::{Bed, Fate, name};

/// Twenty calls that take 10 ms to 105 ms, before one whose attempts have these fates.
async fn hedged(first: Fate, second: Fate) -> Bed {
    let bed = Bed::new(2, move |n| match n {
        1..=20 => ("ok", n as u64 * 5 + 5),
        21 => first,
        _ => second,
    });
    bed.reads(20).await;
    bed
}

fn fate(word: &'static str) -> Fate {
    let (word, after) = word.split_once('@').unwrap_or((word, "0"));
    (word, after.parse().unwrap())
}

/// A hedge is due after 100 ms, as long as the 19th of 20 calls took. The call ends as that
/// attempt, at this time.
const ENDS: &str = "
    first       hedge     ends as            at
    ok@150      ok@1000   21                 150
    hangs       ok        22                 100
    lost@150    ok@1000   22                 1100
    ok@1000     lost@10   21                 1000
    lost@150    lost@500  attempt 21 failed  600
    lost@500    lost@10   attempt 21 failed  500
    unsent@150  lost@500  attempt 22 failed  600
    unsent@500  lost@10   attempt 22 failed  500
";

#[tokio::test(start_paused = true)]
async fn the_first_answer_wins_and_a_failure_waits_for_the_other_attempt() {
    for [first, hedge, end, at] in rows(ENDS) {
        let row = format!("{first}, {hedge}");
        let bed = hedged(fate(first), fate(hedge)).await;
        let ended = bed.read().await;
        let [started, running, cancelled] = bed.attempts();
        assert_eq!((started, running), (22, 0), "{row}: nothing runs on");
        let text = match &ended.result {
            Ok(output) => output.to_text(),
            Err(error) => {
                // the call was sent
                assert_eq!(error.delivery, Delivery::Unknown, "{row}");
                let server = usize::from(end == "attempt 22 failed");
                assert_eq!(error.server.as_ref(), Some(&name(server)), "{row}");
                error.message.to_string()
            }
        };
        assert_eq!(text, end, "{row}");
        let late = ended.took.checked_sub(ms(at.parse().unwrap())).unwrap();
        assert!(late <= ms(2), "{row}: {late:?} late");
        let won = text == "22";
        assert_eq!(ended.record.facts().hedge == HedgeStatus::Won, won, "{row}");
        // attempts take turns: the 21st is of the first server
        let winner = match first {
            "ok@150" => (name(0), "answered before its hedge"),
            "hangs" => (name(1), "answered before a slow attempt"),
            _ => continue,
        };
        assert_eq!(ended.record.facts().server, Some(winner));
        assert_ne!(ended.record.facts().hedge, HedgeStatus::None);
        assert_eq!(cancelled, 1, "{row}: the other attempt is cancelled");
        let stats = bed.layer.stats();
        assert_eq!((stats.sent, stats.won), (1, u64::from(won)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_a_hedge_is_due_ends_the_attempt_at_once() {
    let bed = hedged(("lost", 5), ("ok", 0)).await;
    let ended = bed.read().await;
    assert_eq!((ended.took, bed.started()), (ms(5), 21));
    let error = ended.result.unwrap_err();
    assert_eq!(error.message, "attempt 21 failed");
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_the_call_drops_both_attempts() {
    let bed = hedged(("hangs", 0), ("hangs", 0)).await;
    let call = bed.service.clone().oneshot(read());
    assert!(tokio::time::timeout(ms(1000), call).await.is_err());
    assert_eq!(bed.attempts(), [22, 0, 2]);
}
