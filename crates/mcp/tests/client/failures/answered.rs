//! What a server says instead of a result.

use std::time::Duration;

use super::assert_documented;
use crate::script::{call, calling};
use crate::script_http::{Exchange, JSON, Server, legacy as legacy_http, modern, modern_with};

#[tokio::test]
async fn a_status_says_why() {
    let (upstream, mut server) = modern().await;
    for (statuses, row) in [
        (&[300, 301, 302, 303, 307, 308][..], "HTTP 3xx"),
        (&[400, 404, 413, 422], "HTTP 4xx, another one"),
        (&[401, 403, 407], "HTTP 401, 403 or 407"),
        (&[408], "HTTP 408"),
        (&[429], "HTTP 429"),
        (&[500, 501, 502, 503, 504, 599], "HTTP 5xx"),
    ] {
        for status in statuses {
            let answer = |asked: Exchange| asked.answer(*status, "retry-after: 7\r\n", "no");
            let error = server.fail(&upstream, answer).await;
            assert_documented(row, &error);
            assert_eq!(error.code, Some(i64::from(*status)));
            assert_eq!(error.http_status, Some(*status));
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        }
    }
}

#[tokio::test]
async fn a_code_says_why() {
    let invalid = "JSON-RPC −32700, −32600…−32602, −32021, −32042";
    let others = [-32603, -32000, -32001, -32005, -32019, -31999, 0, 7];
    // before 2026-07-28 a server may use any of them for something else
    for (upstream, mut server) in [modern().await, legacy_http("s").await] {
        for (status, codes, row) in [
            (
                200,
                &[-32700, -32600, -32601, -32602, -32021, -32042][..],
                invalid,
            ),
            (400, &[-32602], invalid),
            // it answers the call itself, and loses no session
            (404, &[-32602], invalid),
            (200, &[-32020], REVISION),
            (200, &others, "JSON-RPC, any other code"),
        ] {
            for code in codes {
                let refuse = |asked: Exchange| asked.refuse(status, *code);
                let error = server.fail(&upstream, refuse).await;
                assert_documented(row, &error);
                assert_eq!((error.code, &*error.message), (Some(*code), "no"));
                let refused = Some(status).filter(|status| *status != 200);
                assert_eq!(error.http_status, refused);
                assert_eq!(&error.data.as_ref().unwrap()[..], b"[1 ]");
            }
        }
        // the next call would have to be greeted
        let running = calling(&upstream, call("x", "{}"));
        server.asked("tools/call").await.refuse(200, -32022).await;
        assert_documented(REVISION, &running.await.unwrap().unwrap_err());
    }
}

const REVISION: &str = "JSON-RPC −32020, −32022";

#[tokio::test]
async fn the_answer_is_none() {
    let (upstream, mut server) = modern().await;
    for (status, headers, body) in [
        (200, JSON, "}"),
        (200, JSON, "[1]"),
        (200, "content-type: text/html\r\n", "<html>"),
        (200, "content-type: application/json-evil\r\n", "{}"),
        (202, "", ""),
    ] {
        let answer = |asked: Exchange| asked.answer(status, headers, body);
        let error = server.fail(&upstream, answer).await;
        assert_documented("an answer cannot be read", &error);
    }
    let error = server.fail(&upstream, |asked| asked.result("[1]")).await;
    assert_documented("an answer cannot be read", &error);
    let round = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#;
    let error = server.fail(&upstream, |asked| asked.result(round)).await;
    assert_documented("a result asks for what the client did not declare", &error);
    // of a revision without rounds
    let (upstream, mut server) = legacy_http("s").await;
    let round = r#"{"resultType":"input_required","requestState":"a"}"#;
    let error = server.fail(&upstream, |asked| asked.result(round)).await;
    assert_documented("an answer cannot be read", &error);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (upstream, mut server) = modern().await;
    let mut elsewhere = Server::start().await;
    let location = format!("location: http://{}/mcp\r\n", elsewhere.address);
    let redirect = |asked: Exchange| asked.answer(307, &location, "");
    assert_documented("HTTP 3xx", &server.fail(&upstream, redirect).await);
    let next = tokio::time::timeout(Duration::ZERO, elsewhere.next()).await;
    assert!(next.is_err(), "{next:?}");
}

#[tokio::test]
async fn an_answer_is_too_long() {
    let row = "an answer, or an event of one, longer";
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(2000));
    let (upstream, mut server) = modern_with(|options| options.max_message = 1024).await;
    let error = server.fail(&upstream, |asked| asked.result(&long)).await;
    assert_documented(row, &error);
    let event = async |mut asked: Exchange| {
        asked.events().await;
        asked.event(&long).await;
    };
    let error = server.fail(&upstream, event).await;
    assert_documented(row, &error);
    for word in ["1024", "max_message"] {
        assert!(error.message.contains(word), "{error}");
    }
}

#[tokio::test]
async fn the_answer_is_lost() {
    let (upstream, mut server) = modern().await;
    let error = server.fail(&upstream, async |asked| drop(asked)).await;
    assert_documented("the connection is lost after that", &error);

    let events = "content-type: text/event-stream\r\n";
    let other = "HTTP: the answer belongs to another request";
    for (status, headers, body, row) in [
        (200, JSON, r#""#, "an answer breaks off"),
        (200, JSON, r#","#, "an answer breaks off"),
        (200, events, "", "an event stream ends without the answer"),
        (200, JSON, r#","id":4711,"result":{}}"#, other),
        (404, JSON, r#","id":4711,"error":{"code":-32601}}"#, other),
    ] {
        let answer = async |mut asked: Exchange| match headers == events {
            true => {
                asked.events().await;
                asked.event(r#"{"jsonrpc":"2.0","method":"x"}"#).await;
            }
            false if body.is_empty() => {
                let head = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 99\r\n\r\n{{");
                asked.write(&head).await;
            }
            false => {
                let body = format!(r#"{{"jsonrpc":"2.0"{body}"#);
                asked.answer(status, headers, &body).await;
            }
        };
        let error = server.fail(&upstream, answer).await;
        assert_documented(row, &error);
    }
}
