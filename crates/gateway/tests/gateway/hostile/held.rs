//! A server on a socket that never comes to an end: silence at each stage, and streams without one.

use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};

use super::Http;
use super::http::{OK, result};

const TIMEOUT: [&str; 2] = ["timeout", "outcome_unknown"];
/// A stream without an answer: nothing is known of a write.
const NO_ANSWER: [&str; 2] = ["too_large", "outcome_unknown"];
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[tokio::test]
async fn a_stream_that_brings_no_message_ends_at_the_limit() {
    for era in [Era::Legacy, Era::Modern] {
        let http = Http::new(era, "60s").await;
        for (row, again) in [
            ("comments", ": there\n\n"),
            ("comments without an end", ": there\n"),
            ("empty events", "data:\n\n"),
            ("ids", "id: 1\n\n"),
            ("line ends", "\n"),
        ] {
            let again = again.repeat(1000);
            http.row(row, NO_ANSWER, move |_| {
                Reply::bytes(EVENTS).and_again(again.clone(), 10_000)
            })
            .await;
        }
        http.scene.ends("no messages").await;
    }
}

#[tokio::test]
async fn what_never_ends_is_given_up() {
    for era in [Era::Legacy, Era::Modern] {
        let http = Http::new(era, "250ms").await;
        for (row, first) in [
            ("silent", ""),
            ("silent in the status", "HTTP/1.1 2"),
            ("silent in the head", "HTTP/1.1 200 OK\r\ncontent-type: a"),
            ("silent in the stream", EVENTS),
            (
                "silent in an event",
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {",
            ),
            (
                "silent in the body",
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
            ),
        ] {
            http.row(row, TIMEOUT, move |_| Reply::bytes(first).then(Then::Hold))
                .await;
        }
        for (row, again) in [
            ("no messages for ever", "data: nonsense\n\n"),
            (
                "other answers for ever",
                "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
            ),
            (
                "notifications for ever",
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n",
            ),
        ] {
            // what fills the gateway's limit for one event is reported as too large, if it comes in
            // time
            let again = again.repeat(100);
            http.endless(row, move |_| {
                Reply::bytes(EVENTS).and_again(again.clone(), u64::MAX)
            })
            .await;
        }
        http.row("good again", OK, |id| {
            Reply::http(200, "content-type: application/json\r\n", &result(id))
        })
        .await;
        http.scene.ends("held").await;
    }
}

/// As many as connections to the gateway are kept; and how many bytes one of them has at most.
const LONG_ANSWERS: usize = 8;
const LONG_ANSWER: u64 = 32 << 20;

#[tokio::test]
async fn long_answers_at_the_same_time_take_the_room_of_a_few() {
    for head in [
        "content-type: application/json\r\n\r\n",
        "content-type: text/event-stream\r\n\r\ndata: ",
    ] {
        let http = Http::sized(Era::Legacy, "2s", "32MiB").await;
        let head = format!("HTTP/1.1 200 OK\r\n{head}");
        http.peer.plays(move |_| {
            let block = "x".repeat(64 << 10);
            Reply::bytes(head.clone())
                .and_again(block, 511)
                .then(Then::Hold)
        });
        let calls = (0..LONG_ANSWERS).map(|_| http.scene.call("pay"));
        for (_, reported) in futures_util::future::join_all(calls).await {
            http.scene
                .holds("a long answer", reported == "outcome_unknown", &reported);
        }
        let (start, now) = (&http.scene.start, http.scene.usage());
        // two at a time, what is given back a little later, and what all else takes
        let kept = now.peak <= start.resident + 6 * LONG_ANSWER;
        http.scene.holds("long answers", kept, &(start, now));
        http.scene.ends("long answers").await;
    }
}

impl Http {
    /// As [`row`](Http::row), where the answer is a failure of either kind.
    async fn endless(&self, row: &str, plays: impl Fn(&str) -> Reply + Send + Sync + 'static) {
        self.peer.plays(plays);
        let (_, read) = self.scene.call("read").await;
        let (pay, paid) = self.scene.call("pay").await;
        let found = (read.as_str(), paid.as_str(), self.ledger.of(pay).seen);
        let kept = matches!(
            found,
            ("timeout" | "too_large", "outcome_unknown" | "too_large", 1)
        );
        self.scene.holds(row, kept, &found);
        self.scene.bounded(row);
        self.scene.neighbour(row).await;
    }
}
