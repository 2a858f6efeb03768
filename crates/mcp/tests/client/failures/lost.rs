//! What fails after the server may have run the call.

use callward_core::{ServerEvent, ToolServer};
use futures_util::StreamExt;

use super::{LONG, answered_with, assert_documented, greeted};
use crate::script::{call, scripted};

#[tokio::test(start_paused = true)]
async fn a_pipe_is_lost() {
    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.start();
    let mut peer = script.accept().await;
    peer.greet_legacy().await;
    upstream.ready(LONG).await.unwrap();
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    peer.asked("tools/call").await;
    drop(peer);
    let error = running.await.unwrap().unwrap_err();
    assert_documented("the connection is lost after that", &error);

    let mut peer = script.accept().await;
    peer.initialize().await;
    let mut events = upstream.events().unwrap();
    while events.next().await != Some(ServerEvent::Up) {}
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    assert_eq!(peer.asked("tools/call").await.id.as_u64(), Some(2));
    peer.line(r#"{"jsonrpc":"2.0","id":2,"result":{"#).await;
    drop(peer);
    assert_documented("an answer breaks off", &running.await.unwrap().unwrap_err());
}

#[tokio::test]
async fn http_is_lost() {
    let (upstream, mut server) = greeted().await;
    let error = answered_with(&upstream, &mut server, async |asked| drop(asked)).await;
    assert_documented("the connection is lost after that", &error);

    let json = "content-type: application/json\r\n";
    let error = answered_with(&upstream, &mut server, |asked| {
        asked.answer(200, json, r#"{"jsonrpc":"2.0","#)
    })
    .await;
    assert_documented("an answer breaks off", &error);

    let error = answered_with(&upstream, &mut server, async |mut asked| {
        asked.events().await;
        asked.event(r#"{"jsonrpc":"2.0","method":"x"}"#).await;
    })
    .await;
    assert_documented("an event stream ends without the answer", &error);

    let error = answered_with(&upstream, &mut server, |asked| {
        asked.answer(200, json, r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#)
    })
    .await;
    assert_documented("HTTP: the answer belongs to another request", &error);
}
