//! A server on a socket that answers in time, with something that is not an answer.

use callward_testkit::hostile::peer::{Reply, Then};

use super::Http;
use super::http::{CHUNKED, ERAS, EVENTS, JSON, LOST, OK, chunk, event, json, open, result};

/// It was answered, but not with a valid answer.
const GARBLED: [&str; 2] = ["protocol", "protocol"];
const TOO_LARGE: [&str; 2] = ["too_large", "too_large"];
/// The answer is to something else: it is unknown if this call ran.
const OTHERS: [&str; 2] = ["protocol", "outcome_unknown"];

#[tokio::test]
async fn an_answer_that_is_none_is_told_as_such_and_costs_little() {
    for era in ERAS {
        let http = Http::new(era, "30s").await;
        encodings(&http).await;
        sizes(&http).await;
        numbers(&http).await;
        ids(&http).await;
        http.row("good again", OK, |id| json(&result(id))).await;
        http.scene.ends("answers").await;
    }
}

async fn encodings(http: &Http) {
    let invalid = |id: &str| result(id).replace("did it", "did \u{1}it");
    http.row("a control character", GARBLED, move |id| json(&invalid(id)))
        .await;
    http.row("invalid UTF-8", GARBLED, |id| {
        let body = result(id);
        let (head, rest) = body.split_once("did").unwrap();
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{JSON}\r\n{head}");
        Reply::bytes([head.as_bytes(), b"\xff\xfe\xc0", rest.as_bytes()].concat()).then(Then::Keep)
    })
    .await;
    // the client of this test would not read it as it is
    http.row("half a character", OK, |id| {
        json(&result(id).replace("did", r"\ud800"))
    })
    .await;
    for other in ["text/plain", "text/html", "application/xml", ""] {
        let headers = format!("content-type: {other}\r\n");
        http.row(other, GARBLED, move |id| {
            Reply::http(200, &headers, &result(id))
        })
        .await;
    }
    http.row("no content type", GARBLED, |id| {
        Reply::http(200, "", &result(id))
    })
    .await;
    http.row("gzip that was not asked for", GARBLED, |_| {
        Reply::http(
            200,
            &format!("{JSON}content-encoding: gzip\r\n"),
            "\u{1f}\u{8b}",
        )
    })
    .await;
    http.row("a length that is too long", OK, |id| {
        let body = result(id);
        let length = body.len() + 100;
        open(&format!("{JSON}content-length: {length}\r\n"), &body)
    })
    .await;
    http.row("a length that is too short", LOST, |id| {
        open(&format!("{JSON}content-length: 20\r\n"), &result(id))
    })
    .await;
    for length in ["-1", "x", "1e3", "99999999999999999999999", "5, 6"] {
        let headers = format!("{JSON}content-length: {length}\r\n");
        http.row(length, LOST, move |id| open(&headers, &result(id)))
            .await;
    }
    for head in [
        "",
        "\0\0\0\0\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "SSH-2.0-x\r\n",
        "{}\r\n\r\n",
    ] {
        http.row(&format!("head {head:?}"), LOST, move |_| Reply::bytes(head))
            .await;
    }
    http.row("an empty body", LOST, |_| json("")).await;
    for (row, outcome, members) in [
        ("a result without content", GARBLED, ""),
        (
            "no content but a type",
            GARBLED,
            r#""resultType":"complete""#,
        ),
        ("structured content alone", OK, r#""structuredContent":{}"#),
    ] {
        http.row(row, outcome, move |id| {
            json(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{{members}}}}}"#
            ))
        })
        .await;
    }
    for body in ["null", "[]", "{}", "1", "nonsense", "{}{}"] {
        http.row(&format!("body {body:?}"), GARBLED, move |_| json(body))
            .await;
    }
}

async fn sizes(http: &Http) {
    let hundred = 100 << 20;
    let block = "x".repeat(64 << 10);
    let times = hundred / (64 << 10);
    let again = block.clone();
    http.row("a body of 100 MB", TOO_LARGE, move |_| {
        let head = format!("{JSON}content-length: {hundred}\r\n");
        open(&head, "").and_again(again.clone(), times)
    })
    .await;
    let again = chunk(&block);
    http.row("chunks of 100 MB", TOO_LARGE, move |_| {
        open(&format!("{JSON}{CHUNKED}"), "").and_again(again.clone(), times)
    })
    .await;
    let again = block.clone();
    http.row("a line of 100 MB", TOO_LARGE, move |_| {
        open(EVENTS, "data: ").and_again(again.clone(), times)
    })
    .await;
    http.row("an event of 100 MB", TOO_LARGE, move |_| {
        open(EVENTS, "").and_again(format!("data: {block}\n"), times)
    })
    .await;
    http.row("a head of 100 MB", LOST, move |_| {
        Reply::bytes("HTTP/1.1 200 OK\r\nx: ").and_again("x".repeat(64 << 10), times)
    })
    .await;
    http.row("a million headers", LOST, |_| {
        Reply::bytes("HTTP/1.1 200 OK\r\n").and_again("x: y\r\n", 1_000_000)
    })
    .await;
    // the result itself is the first level
    for (levels, outcome) in [(120, OK), (121, GARBLED), (100_000, GARBLED)] {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        let deep = format!(r#""x":{open}{close},"content""#);
        http.row(&format!("{levels} levels"), outcome, move |id| {
            json(&result(id).replace(r#""content""#, &deep))
        })
        .await;
    }
}

/// Numbers of any size are JSON, and those that are infinite as floats are an error to many
/// parsers.
async fn numbers(http: &Http) {
    let digits = "9".repeat(5000);
    for (number, outcome) in [
        ("1e308", OK),
        ("-1E400", GARBLED),
        (&digits, GARBLED),
        (r#""1e400""#, OK),
    ] {
        let large = format!(r#""x":[{number}],"content""#);
        http.row(&format!("{number:.9}"), outcome, move |id| {
            json(&result(id).replace(r#""content""#, &large))
        })
        .await;
    }
}

async fn ids(http: &Http) {
    for (id, outcome) in [
        ("999999", OTHERS),
        ("\"1\"", OTHERS),
        ("-1", OTHERS),
        ("1.5", OTHERS),
        ("[]", GARBLED),
        ("{}", GARBLED),
        ("true", GARBLED),
    ] {
        http.row(&format!("id {id}"), outcome, move |_| json(&result(id)))
            .await;
        http.row(&format!("event of id {id}"), LOST, move |_| {
            open(EVENTS, &event(&result(id)))
        })
        .await;
    }
    http.row("after answers to others", OK, |id| {
        let others: String = (5_000_000..5_001_000)
            .map(|other| event(&result(&other.to_string())))
            .collect();
        open(EVENTS, &(others + &event(&result(id))))
    })
    .await;
    http.row("answered twice", OK, |id| {
        open(EVENTS, &event(&result(id)).repeat(2))
    })
    .await;
    http.row("two results", GARBLED, |id| {
        let one = result(id);
        json(&one.replace(r#""result""#, r#""result":{},"result""#))
    })
    .await;
    http.row("a result and an error", GARBLED, |id| {
        json(&result(id).replace(r#""result""#, r#""error":{"code":1,"message":""},"result""#))
    })
    .await;
    http.row("a batch", GARBLED, |id| json(&format!("[{}]", result(id))))
        .await;
    http.row("a request in its place", OTHERS, |id| {
        json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
    })
    .await;
}
