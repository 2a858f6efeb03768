//! A server on a socket that never comes to an end: silence at each stage, and streams without one.

use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};

use super::{ERAS, EVENTS, Http, JSON, OK, Usage, json, open, result};

const TIMEOUT: [&str; 2] = ["timeout", "outcome_unknown"];
/// A stream without an answer: nothing is known of a write.
const NO_ANSWER: [&str; 2] = ["too_large", "outcome_unknown"];

#[tokio::test]
async fn a_stream_that_brings_no_message_ends_at_the_limit() {
    for era in ERAS {
        let http = Http::new(era, "60s", "1MiB").await;
        for (row, again) in [
            ("comments", ": there\n\n"),
            ("comments without an end", ": there\n"),
            ("empty events", "data:\n\n"),
            ("ids", "id: 1\n\n"),
            ("line ends", "\n"),
        ] {
            let again = again.repeat(1000);
            let plays = move |_: &str| open(EVENTS, "").and_again(again.clone(), 10_000);
            http.row(row, NO_ANSWER, plays).await;
        }
        http.scene.ends("no messages").await;
    }
}

#[tokio::test]
async fn what_never_ends_is_given_up() {
    for era in ERAS {
        let http = Http::new(era, "250ms", "1MiB").await;
        let events = format!("HTTP/1.1 200 OK\r\n{EVENTS}");
        let body = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 100\r\n\r\n{{");
        for (row, first) in [
            ("silent", String::new()),
            ("silent in the status", "HTTP/1.1 2".to_owned()),
            ("silent in the head", format!("HTTP/1.1 200 OK\r\n{JSON}")),
            ("silent in the stream", format!("{events}\r\n")),
            ("silent in an event", format!("{events}\r\ndata: {{")),
            ("silent in the body", body),
        ] {
            let plays = move |_: &str| Reply::bytes(first.clone()).then(Then::Hold);
            http.row(row, TIMEOUT, plays).await;
        }
        for again in [
            "nonsense",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
        ] {
            let events = format!("data: {again}\n\n").repeat(100);
            let plays = move |_: &str| open(EVENTS, "").and_again(events.clone(), u64::MAX);
            // what fills the gateway's limit for one event is reported as too large, if it comes
            // in time
            let any: [&[_]; 2] = [&["timeout", "too_large"], &["outcome_unknown", "too_large"]];
            http.row_of_any(again, any, plays).await;
        }
        http.row("good again", OK, |id| json(&result(id))).await;
        http.scene.ends("held").await;
    }
}

/// As many as connections to the gateway are kept; and how many bytes one of them has at most.
const LONG_ANSWERS: usize = 8;
const LONG_ANSWER: u64 = 32 << 20;

#[tokio::test]
async fn long_answers_at_the_same_time_take_the_room_of_a_few() {
    for (headers, body) in [(JSON, ""), (EVENTS, "data: ")] {
        let http = Http::new(Era::Legacy, "2s", "32MiB").await;
        http.peer.plays(move |_| {
            let block = "x".repeat(64 << 10);
            open(headers, body).and_again(block, 511).then(Then::Hold)
        });
        let scene = &http.scene;
        let calls = (0..LONG_ANSWERS).map(|_| scene.call("pay"));
        for (_, reported) in futures_util::future::join_all(calls).await {
            scene.holds("a long answer", reported == "outcome_unknown", &reported);
        }
        let (start, now) = (&scene.start, Usage::of(&scene.gateway));
        // two at a time, what is given back a little later, and what all else takes
        let kept = now.peak <= start.resident + 6 * LONG_ANSWER;
        scene.holds("long answers", kept, &(start, now));
        scene.ends("long answers").await;
    }
}
