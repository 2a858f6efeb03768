//! An HTTP server that is gone after every byte of its answer.

use callward_core::{Delivery, ErrorKind, ToolError};
use callward_testkit::chaos::Break;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};
use futures_util::future::join_all;

use super::{Bed, assert_told_the_truth, delivery, object_end};

/// The forms of an answer, in words that [`answer`] and [`meaning`] read.
const FORMS: [&str; 8] = [
    "result of known length",
    "result in chunks",
    "result to the end of the connection",
    "result as event in chunks",
    "result as event to the end of the connection",
    "error of known length",
    "error as event in chunks",
    "error with status of known length",
];

fn answer(form: &str, id: &str) -> String {
    let outcome = match form.starts_with("error") {
        true => r#""error":{"code":-32603,"message":"no } way"}"#,
        false => r#""result":{"content":[{"type":"text","text":"{\"}"}]}"#,
    };
    let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#);
    let mut kind = "application/json";
    if form.contains("event") {
        body = format!(": hello\n\nevent: message\ndata: {body}\n\n");
        kind = "text/event-stream";
    }
    let status = if form.contains("status") { 503 } else { 200 };
    let mut framing = format!("retry-after: 7\r\ncontent-length: {}", body.len());
    if form.contains("end") {
        framing = "connection: close".to_owned();
    } else if form.contains("chunks") {
        framing = "transfer-encoding: chunked".to_owned();
        let (one, other) = body.split_at(body.len() / 2);
        let lengths = (one.len(), other.len());
        body = format!(
            "{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
            lengths.0, lengths.1
        );
    }
    format!("HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n{body}")
}

/// What is known once this much was said: JSON says something with its last bracket, whatever
/// should have come after it, an event with the empty line after it, and a status with its head.
fn meaning(form: &str, said: &str) -> Option<Delivery> {
    let body = said.split_once("\r\n\r\n").map(|(_, body)| body);
    let is_said = body.is_some_and(|body| {
        form.contains("status")
            || match form.contains("event") {
                true => body.contains("}\n\n"),
                false => object_end(body.as_bytes()).is_some(),
            }
    });
    match is_said {
        false => Some(Delivery::Unknown),
        true => form.starts_with("error").then_some(Delivery::Answered),
    }
}

async fn fails_at_every_byte(era: Era, end: Break) {
    let mut bed = Bed::new(era).await;
    for form in FORMS {
        // ids have as many digits as the last one
        let length = answer(form, "10000").len();
        for count in 0..=length {
            let (sender, mut sent) = tokio::sync::mpsc::unbounded_channel();
            bed.peer.plays(move |id| {
                let answer = answer(form, id);
                let then = match count < answer.len() || answer.contains("connection: close") {
                    true => Then::End(end),
                    false => Then::Keep,
                };
                let said = answer.get(..count).unwrap_or(&answer).to_owned();
                let reply = Reply::bytes(&*said).then(then);
                sender.send(said).unwrap();
                reply
            });
            let (ended, executions) = bed.call(0).await;
            let said = sent.recv().await.unwrap();
            let at = format!("{era:?}, {form}, {end:?} after {count} bytes: {said:?}: {ended:?}");
            assert_eq!(executions, 1, "{at}");
            assert_told_the_truth(&ended, executions, &at);
            let (reported, meant) = (delivery(&ended), meaning(form, &said));
            // what was said before a reset may be lost with it
            let is_lost = end == Break::Reset && reported == Some(Delivery::Unknown);
            assert!(reported == meant || is_lost, "{at}: not {meant:?}");
            if let Err(error) = &ended {
                assert_error(error, &said, &at);
            }
        }
    }
}

fn assert_error(error: &ToolError, said: &str, at: &str) {
    if error.delivery == Delivery::Unknown {
        assert_eq!(error.kind, ErrorKind::ConnectionLost, "{at}");
        return;
    }
    assert_eq!(error.kind, ErrorKind::ServerFault, "{at}");
    if said.starts_with("HTTP/1.1 503") {
        let wait = error.retry_after.map(|wait| wait.as_secs());
        assert_eq!(wait, Some(7), "{at}");
        assert!(matches!(error.code, Some(503 | -32603)), "{at}");
    } else {
        assert_eq!(error.code, Some(-32603), "{at}");
    }
}

#[tokio::test]
async fn a_server_that_ends_the_connection_within_its_answer() {
    let all = super::MODES.map(|(era, end)| fails_at_every_byte(era, end));
    join_all(all).await;
}
