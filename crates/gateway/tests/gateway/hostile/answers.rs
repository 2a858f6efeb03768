//! A server on a socket that answers in time, with something that is not an answer.

use callward_chaos::Break;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};

use super::{ERAS, EVENTS, Http, JSON, LOST, OK, event, json, open, result};

/// It was answered, but not with a valid answer.
const GARBLED: [&str; 2] = ["protocol"; 2];
const TOO_LARGE: [&str; 2] = ["too_large"; 2];
/// The answer is to something else: it is unknown if this call ran.
const OTHERS: [&str; 2] = ["protocol", "outcome_unknown"];

#[tokio::test]
async fn an_answer_that_is_none_is_told_as_such_and_costs_little() {
    for era in ERAS {
        let http = Http::new(era, "30s", "1MiB").await;
        statuses(&http, era).await;
        breaks(&http).await;
        encodings(&http).await;
        bodies(&http).await;
        sizes(&http).await;
        ids(&http).await;
        http.row("good again", OK, |id| json(&result(id))).await;
        http.scene.ends("answers").await;
    }
}

/// A status without a body, with and without the effect before it.
async fn statuses(http: &Http, era: Era) {
    for (statuses, replies) in [
        // the final answer never comes
        (&[100, 102, 103, 199][..], LOST),
        // the protocol is switched without a request for it
        (&[101], GARBLED),
        (&[200, 202, 204, 206, 301, 304, 307, 399], GARBLED),
        (&[401, 403, 407], ["unauthorized"; 2]),
        (&[408], ["timeout"; 2]),
        (&[429], ["rate_limited"; 2]),
        (
            &[400, 405, 409, 410, 421, 422, 425, 499],
            ["invalid_call"; 2],
        ),
        (&[500, 501, 502, 503, 504, 599], ["server_fault"; 2]),
        match era {
            Era::Legacy => (&[404], ["session_lost", "outcome_unknown"]),
            Era::Modern => (&[404], ["invalid_call"; 2]),
        },
    ] {
        for status in statuses.iter().copied() {
            for runs in [false, true] {
                let then = match status {
                    100..=199 => Then::End(Break::Close),
                    _ => Then::Keep,
                };
                let reply = Reply::http(status, "", "").runs(runs).then(then);
                let row = format!("HTTP {status}, runs {runs}");
                http.row(&row, replies, move |_| reply.clone()).await;
            }
        }
    }
}

/// An answer that breaks off.
async fn breaks(http: &Http) {
    let length = json(&result("10000")).len();
    for at in (0..length).step_by(9).chain([length - 1]) {
        let broken = [Break::Close, Break::Reset][at % 2];
        let cut = move |id: &str| {
            let whole = json(&result(id));
            // an id has as many digits as it has: the last bytes may be cut off or not
            let at = at.min(whole.len() - 1);
            whole.cut(at).then(Then::End(broken))
        };
        http.row(&format!("cut at {at}"), LOST, cut).await;
    }
    for size in [
        "zz\r\n",
        "-1\r\n",
        "fffffffffffffffff\r\n",
        "00000000000000000000000000000000000\r\n",
        "5hello",
    ] {
        let reply = open(&format!("{JSON}transfer-encoding: chunked\r\n"), size);
        http.row(size, LOST, move |_| reply.clone()).await;
    }
    for length in ["20", "-1", "x", "1e3", "99999999999999999999999", "5, 6"] {
        let headers = format!("{JSON}content-length: {length}\r\n");
        let plays = move |id: &str| open(&headers, &result(id));
        http.row(length, LOST, plays).await;
    }
    http.row("a length that is too long", OK, |id| {
        let body = result(id);
        let length = body.len() + 100;
        open(&format!("{JSON}content-length: {length}\r\n"), &body)
    })
    .await;
    for head in [
        "\0\0\0\0\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "SSH-2.0-x\r\n",
        "{}\r\n\r\n",
    ] {
        http.row(head, LOST, move |_| Reply::bytes(head)).await;
    }
}

async fn encodings(http: &Http) {
    let invalid = |id: &str| json(&result(id).replace("did it", "did \u{1}it"));
    http.row("a control character", GARBLED, invalid).await;
    http.row("invalid UTF-8", GARBLED, |id| {
        let body = result(id);
        let (head, rest) = body.split_once("did").unwrap();
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{JSON}\r\n{head}");
        Reply::bytes([head.as_bytes(), b"\xff\xfe\xc0", rest.as_bytes()].concat()).then(Then::Keep)
    })
    .await;
    // the client of this test would not read it as it is
    let half = |id: &str| json(&result(id).replace("did", r"\ud800"));
    http.row("half a character", OK, half).await;
    for headers in [
        "content-type: text/plain\r\n",
        "content-type: application/xml\r\n",
        "content-type: \r\n",
        "",
        "content-type: application/json\r\ncontent-encoding: gzip\r\n",
    ] {
        let plays = move |id: &str| {
            let body = match headers.contains("gzip") {
                true => "\u{1f}\u{8b}".to_owned(),
                false => result(id),
            };
            Reply::http(200, headers, &body)
        };
        http.row(headers, GARBLED, plays).await;
    }
}

/// Bodies, in which `RESULT` stands for a good answer and `ID` for the id of the call.
async fn bodies(http: &Http) {
    let digits = "9".repeat(5000);
    let number = |number: &str| format!(r#"WITH"x":[{number}],"content""#);
    // the result itself is the first level
    let levels = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"WITH"x":{open}{close},"content""#)
    };
    for (outcome, body) in [
        (LOST, ""),
        (GARBLED, "null"),
        (GARBLED, "[]"),
        (GARBLED, "{}"),
        (GARBLED, "nonsense"),
        (GARBLED, "{}{}"),
        (GARBLED, "[RESULT]"),
        (GARBLED, r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#),
        (
            GARBLED,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete"}}"#,
        ),
        (
            OK,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{}}}"#,
        ),
        (OTHERS, r#"{"jsonrpc":"2.0","id":ID,"method":"ping"}"#),
        (
            GARBLED,
            r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{"content":[]}}"#,
        ),
        (
            GARBLED,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":""},"result":{"content":[]}}"#,
        ),
        // numbers of any size are JSON; those that are infinite as floats are an error to many
        // parsers
        (OK, &number("1e308")),
        (GARBLED, &number("-1E400")),
        (GARBLED, &number(&digits)),
        (OK, &number(r#""1e400""#)),
        (OK, &levels(120)),
        (GARBLED, &levels(121)),
        (GARBLED, &levels(100_000)),
    ] {
        let row = format!("body {body:.40}");
        let body = body.to_owned();
        let plays = move |id: &str| {
            let result = result(id);
            json(&match body.strip_prefix("WITH") {
                Some(member) => result.replace(r#""content""#, member),
                None => body.replace("RESULT", &result).replace("ID", id),
            })
        };
        http.row(&row, outcome, plays).await;
    }
}

async fn sizes(http: &Http) {
    let block = "x".repeat(64 << 10);
    let times = 100 << 4;
    let hundred = format!("{JSON}content-length: {}\r\n", 100 << 20);
    let chunked = format!("{JSON}transfer-encoding: chunked\r\n");
    let chunk = format!("{:x}\r\n{block}\r\n", block.len());
    let header = "HTTP/1.1 200 OK\r\nx: ";
    let body = open(&hundred, "").and_again(block.clone(), times);
    let chunks = open(&chunked, "").and_again(chunk, times);
    let line = open(EVENTS, "data: ").and_again(block.clone(), times);
    let event = open(EVENTS, "").and_again(format!("data: {block}\n"), times);
    let head = Reply::bytes(header).and_again(block, times);
    let headers = Reply::bytes("HTTP/1.1 200 OK\r\n").and_again("x: y\r\n", 1_000_000);
    for (row, outcome, reply) in [
        ("a body of 100 MB", TOO_LARGE, body),
        ("chunks of 100 MB", TOO_LARGE, chunks),
        ("a line of 100 MB", TOO_LARGE, line),
        ("an event of 100 MB", TOO_LARGE, event),
        ("a head of 100 MB", LOST, head),
        ("a million headers", LOST, headers),
    ] {
        http.row(row, outcome, move |_| reply.clone()).await;
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
        let of_it = move |_: &str| open(EVENTS, &event(&result(id)));
        http.row(&format!("event of id {id}"), LOST, of_it).await;
    }
    http.row("after answers to others", OK, |id| {
        let others = (5_000_000..5_001_000).map(|other| event(&result(&other.to_string())));
        open(EVENTS, &(others.collect::<String>() + &event(&result(id))))
    })
    .await;
    let twice = |id: &str| open(EVENTS, &event(&result(id)).repeat(2));
    http.row("answered twice", OK, twice).await;
}
