//! What a server says instead of a result.

use std::time::Duration;

use super::{LONG, answered_with, assert_documented, greeted};
use crate::script::{call, scripted};
use crate::script_http::Server;
use callward_core::ToolServer;

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn a_status_says_why() {
    let (upstream, mut server) = greeted().await;
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
                let error = answered_with(&upstream, &mut server, |asked| {
                    asked.answer(*status, headers, "no")
                })
                .await;
                assert_documented(row, &error);
                assert_eq!(error.code(), Some(i64::from(*status)));
                assert_eq!(error.retry_after(), wait.map(Duration::from_secs));
            }
        }
    }
}

#[tokio::test]
async fn a_code_says_why() {
    let (upstream, mut server) = greeted().await;
    for (codes, row) in [
        (
            &[-32700, -32600, -32601, -32602, -32021][..],
            "JSON-RPC −32700, −32600…−32602, −32021",
        ),
        (&[-32020], "JSON-RPC −32020, −32022"),
        (
            &[-32603, -32000, -32001, -32019, -32042, -31999, 0, 7],
            "JSON-RPC, any other code",
        ),
        (&[-32022], "JSON-RPC −32020, −32022"),
    ] {
        for code in codes {
            let error =
                answered_with(&upstream, &mut server, |asked| asked.refuse(200, *code)).await;
            assert_documented(row, &error);
            assert_eq!((error.code(), error.message()), (Some(*code), "no"));
        }
    }
}

#[tokio::test]
async fn the_answer_is_none() {
    let (upstream, mut server) = greeted().await;
    for body in ["}", "[1]"] {
        let error = answered_with(&upstream, &mut server, |asked| {
            asked.answer(200, JSON, body)
        })
        .await;
        assert_documented("an answer cannot be read", &error);
    }
    let error = answered_with(&upstream, &mut server, |asked| asked.result("[1]")).await;
    assert_documented("an answer cannot be read", &error);
    let error = answered_with(&upstream, &mut server, |asked| asked.answer(202, "", "")).await;
    assert_documented("an answer cannot be read", &error);
}

#[tokio::test]
async fn a_session_is_forgotten() {
    let mut server = Server::start().await;
    let upstream = server.upstream().start();
    server.greet_legacy("one").await;
    upstream.ready(LONG).await.unwrap();
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    server.asked("tools/call").await.answer(404, "", "").await;
    let error = running.await.unwrap().unwrap_err();
    assert_documented("the server forgets the session of the call", &error);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (upstream, mut server) = greeted().await;
    let mut elsewhere = Server::start().await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: http://{}/mcp\r\n", elsewhere.address);
        let error = answered_with(&upstream, &mut server, |asked| {
            asked.answer(status, &location, "")
        })
        .await;
        assert_documented("HTTP 3xx", &error);
    }
    // the first to arrive there is another client
    let mine = tokio::net::TcpStream::connect(elsewhere.address)
        .await
        .unwrap();
    let (_, mut mine) = mine.into_split();
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
    let error = answered_with(&upstream, &mut server, |asked| asked.result(&long)).await;
    assert_documented(row, &error);
    let error = answered_with(&upstream, &mut server, async |mut asked| {
        asked.events().await;
        asked.event(&long).await;
    })
    .await;
    assert_documented(row, &error);

    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.max_message(1024).start();
    let mut peer = script.accept().await;
    peer.greet_legacy().await;
    upstream.ready(LONG).await.unwrap();
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    let asked = peer.asked("tools/call").await;
    peer.reply(&asked, &long).await;
    assert_documented(row, &running.await.unwrap().unwrap_err());
}
