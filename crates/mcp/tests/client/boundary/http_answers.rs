//! An HTTP server that is gone after every byte of its answer.

use callward_core::{Delivery, ErrorKind, ToolError};
use callward_testkit::chaos::Break;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};

use super::{Bed, assert_told_the_truth, delivery, object_end};

/// One way to say something.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    answer: fn(&str) -> String,
    /// What is known once this much was said.
    meaning: fn(&str) -> Option<Delivery>,
}

const FORMS: [Form; 8] = [
    Form {
        name: "JSON of known length",
        answer: |id| with_length("200 x", "application/json", &result(id)),
        meaning: json,
    },
    Form {
        name: "JSON in chunks",
        answer: |id| in_chunks("application/json", &result(id)),
        meaning: json,
    },
    Form {
        name: "JSON to the end of the connection",
        answer: |id| to_the_end("application/json", &result(id)),
        meaning: json,
    },
    Form {
        name: "events in chunks",
        answer: |id| in_chunks("text/event-stream", &event(&result(id))),
        meaning: events,
    },
    Form {
        name: "events to the end of the connection",
        answer: |id| to_the_end("text/event-stream", &event(&result(id))),
        meaning: events,
    },
    Form {
        name: "a JSON-RPC error",
        answer: |id| with_length("200 x", "application/json", &error(id)),
        meaning: |said| json(said).or(Some(Delivery::Answered)),
    },
    Form {
        name: "a JSON-RPC error as an event",
        answer: |id| in_chunks("text/event-stream", &event(&error(id))),
        meaning: |said| events(said).or(Some(Delivery::Answered)),
    },
    Form {
        name: "a status and a reason",
        answer: |id| with_length("503 x", "application/json", &error(id)),
        // the status says enough
        meaning: |said| {
            Some(match body(said) {
                None => Delivery::Unknown,
                Some(_) => Delivery::Answered,
            })
        },
    },
];

fn result(id: &str) -> String {
    let result = r#"{"content":[{"type":"text","text":"{\"}"}]}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"no }} way"}}}}"#)
}

fn event(data: &str) -> String {
    format!(": hello\n\nevent: message\ndata: {data}\n\n")
}

fn with_length(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nretry-after: 7\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn in_chunks(content_type: &str, body: &str) -> String {
    let (one, other) = body.split_at(body.len() / 2);
    format!(
        "HTTP/1.1 200 x\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
        one.len(),
        other.len()
    )
}

fn to_the_end(content_type: &str, body: &str) -> String {
    format!("HTTP/1.1 200 x\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n{body}")
}

fn body(said: &str) -> Option<&str> {
    said.split_once("\r\n\r\n").map(|(_, body)| body)
}

/// JSON says something with its last bracket, whatever should have come after it.
fn json(said: &str) -> Option<Delivery> {
    match body(said).and_then(|body| object_end(body.as_bytes())) {
        None => Some(Delivery::Unknown),
        Some(_) => None,
    }
}

/// An event says something with the empty line after it.
fn events(said: &str) -> Option<Delivery> {
    let is_said = body(said).is_some_and(|body| body.contains("}\n\n"));
    (!is_said).then_some(Delivery::Unknown)
}

async fn fails_at_every_byte(era: Era, end: Break) {
    let mut bed = Bed::new(era).await;
    for form in FORMS {
        // ids have as many digits as the last one
        let length = (form.answer)("10000").len();
        for count in 0..=length {
            let (sender, mut sent) = tokio::sync::mpsc::unbounded_channel();
            bed.peer.plays(move |id| {
                let answer = (form.answer)(id);
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
            let at = format!("{era:?}, {}, {end:?} after {count} bytes", form.name);
            let at = format!("{at}: {said:?}: {ended:?}");
            assert_eq!(executions, 1, "{at}");
            assert_told_the_truth(&ended, executions, &at);
            let (reported, meant) = (delivery(&ended), (form.meaning)(&said));
            // what was said before a reset may be lost with it
            let is_lost = end == Break::Reset && reported == Some(Delivery::Unknown);
            assert!(
                reported == meant || is_lost,
                "{at}: {reported:?}, not {meant:?}"
            );
            if let Err(error) = &ended {
                assert_error(error, &said, &at);
            }
        }
    }
}

fn assert_error(error: &ToolError, said: &str, at: &str) {
    if error.delivery() == Delivery::Unknown {
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{at}");
        return;
    }
    assert_eq!(error.kind(), ErrorKind::ServerFault, "{at}");
    if said.starts_with("HTTP/1.1 503") {
        let wait = error.retry_after().map(|wait| wait.as_secs());
        assert_eq!(wait, Some(7), "{at}");
        assert!(matches!(error.code(), Some(503 | -32603)), "{at}");
    } else {
        assert_eq!(error.code(), Some(-32603), "{at}");
    }
}

#[tokio::test]
async fn a_server_that_ends_the_connection_within_its_answer() {
    tokio::join!(
        fails_at_every_byte(Era::Legacy, Break::Close),
        fails_at_every_byte(Era::Legacy, Break::Reset),
        fails_at_every_byte(Era::Modern, Break::Close),
        fails_at_every_byte(Era::Modern, Break::Reset),
    );
}
