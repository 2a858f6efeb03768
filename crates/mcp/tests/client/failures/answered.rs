//! What a server says instead of a result.

use std::time::Duration;

use super::assert_documented;
use crate::script::{LONG, call, calling, greeted, scripted};
use crate::script_http::{Exchange, JSON, Server, legacy as legacy_http, modern};

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
            for (headers, wait) in [
                ("", None),
                ("retry-after: 7\r\n", Some(7)),
                (
                    "date: Sun, 06 Nov 1994 08:49:00 GMT\r\n\
                     retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                    Some(37),
                ),
            ] {
                let answer = |asked: Exchange| asked.answer(*status, headers, "no");
                let error = server.fail(&upstream, answer).await;
                assert_documented(row, &error);
                assert_eq!(error.code(), Some(i64::from(*status)));
                assert_eq!(error.retry_after(), wait.map(Duration::from_secs));
            }
        }
    }
}

#[tokio::test]
async fn a_code_says_why() {
    let (upstream, mut server) = modern().await;
    for (status, codes, row) in [
        (
            200,
            &[-32700, -32600, -32601, -32602, -32021][..],
            "JSON-RPC −32700, −32600…−32602, −32021",
        ),
        (400, &[-32602], "JSON-RPC −32700, −32600…−32602, −32021"),
        (200, &[-32020], REVISION),
        (
            200,
            &[-32603, -32000, -32001, -32019, -32042, -31999, 0, 7],
            "JSON-RPC, any other code",
        ),
    ] {
        for code in codes {
            let refuse = |asked: Exchange| asked.refuse(status, *code);
            let error = server.fail(&upstream, refuse).await;
            assert_documented(row, &error);
            assert_eq!((error.code(), error.message()), (Some(*code), "no"));
        }
    }
    // the next call would have to be greeted
    let running = calling(&upstream, call("x", "{}"));
    server.asked("tools/call").await.refuse(200, -32022).await;
    assert_documented(REVISION, &running.await.unwrap().unwrap_err());
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
}

#[tokio::test]
async fn a_session_is_forgotten() {
    let (upstream, mut server) = legacy_http("one").await;
    let running = calling(&upstream, call("x", "{}"));
    server.asked("tools/call").await.answer(404, "", "").await;
    let error = running.await.unwrap().unwrap_err();
    assert_documented("the server forgets the session of the call", &error);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (upstream, mut server) = modern().await;
    let mut elsewhere = Server::start().await;
    for status in [301, 302, 303, 307, 308] {
        let to = elsewhere.address;
        let location = format!("location: http://ada:pw@{to}/mcp?code=s3cret#s3cret\r\n");
        let redirect = |asked: Exchange| asked.answer(status, &location, "");
        let error = server.fail(&upstream, redirect).await;
        assert_documented("HTTP 3xx", &error);
        assert!(error.message().contains(&format!("{to}/mcp")), "{error}");
        for secret in ["s3cret", "pw"] {
            assert!(!error.message().contains(secret), "{error}");
        }
    }
    // the first to arrive there is another client
    let mine = tokio::net::TcpStream::connect(elsewhere.address).await;
    let (_, mut mine) = mine.unwrap().into_split();
    tokio::io::AsyncWriteExt::write_all(&mut mine, b"HELLO /\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(elsewhere.next().await.method, "HELLO");
}

#[tokio::test]
async fn an_answer_is_too_long() {
    let row = "an answer, or an event of one, longer";
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(2000));
    let mut server = Server::start().await;
    let upstream = server.upstream().max_message(1024).start();
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
    let error = server.fail(&upstream, |asked| asked.result(&long)).await;
    assert_documented(row, &error);
    let event = async |mut asked: Exchange| {
        asked.events().await;
        asked.event(&long).await;
    };
    let error = server.fail(&upstream, event).await;
    assert_documented(row, &error);
    for word in ["1024", "max_message"] {
        assert!(error.message().contains(word), "{error}");
    }

    let (builder, script) = scripted(1 << 16);
    let (upstream, mut peer, _script) = greeted(builder.max_message(1024), script).await;
    let running = calling(&upstream, call("x", "{}"));
    let asked = peer.asked("tools/call").await;
    peer.reply(&asked, &long).await;
    assert_documented(row, &running.await.unwrap().unwrap_err());
}
