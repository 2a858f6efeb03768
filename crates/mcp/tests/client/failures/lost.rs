//! What fails after the server may have run the call.

use callward_core::{ServerEvent, ToolServer};
use futures_util::StreamExt;

use super::assert_documented;
use crate::script::{call, calling, legacy};
use crate::script_http::{Exchange, JSON, modern};

#[tokio::test(start_paused = true)]
async fn a_pipe_is_lost() {
    let (upstream, mut peer, mut script) = legacy().await;
    let running = calling(&upstream, call("x", "{}"));
    peer.asked("tools/call").await;
    drop(peer);
    let error = running.await.unwrap().unwrap_err();
    assert_documented("the connection is lost after that", &error);

    let mut peer = script.accept().await;
    peer.initialize().await;
    let mut events = upstream.events().unwrap();
    while events.next().await != Some(ServerEvent::Up) {}
    let running = calling(&upstream, call("x", "{}"));
    assert_eq!(peer.asked("tools/call").await.id.as_u64(), Some(2));
    peer.line(r#"{"jsonrpc":"2.0","id":2,"result":{"#).await;
    drop(peer);
    assert_documented("an answer breaks off", &running.await.unwrap().unwrap_err());
}

#[tokio::test]
async fn http_is_lost() {
    let (upstream, mut server) = modern().await;
    let error = server.fail(&upstream, async |asked| drop(asked)).await;
    assert_documented("the connection is lost after that", &error);

    let events = "content-type: text/event-stream\r\n";
    let other = "HTTP: the answer belongs to another request";
    for (status, headers, body, row) in [
        (200, JSON, r#"{"jsonrpc":"2.0","#, "an answer breaks off"),
        (
            200,
            events,
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n",
            "an event stream ends without the answer",
        ),
        (
            200,
            JSON,
            r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#,
            other,
        ),
        (
            404,
            JSON,
            r#"{"jsonrpc":"2.0","id":4711,"error":{"code":-32601,"message":"no"}}"#,
            other,
        ),
    ] {
        let answer = |asked: Exchange| asked.answer(status, headers, body);
        let error = server.fail(&upstream, answer).await;
        assert_documented(row, &error);
    }
    let short = async |mut asked: Exchange| {
        asked
            .write(&format!(
                "HTTP/1.1 200 OK\r\n{JSON}content-length: 99\r\n\r\n{{"
            ))
            .await;
    };
    let error = server.fail(&upstream, short).await;
    assert_documented("an answer breaks off", &error);
}
