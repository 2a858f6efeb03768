//! Calls and listings over a pipe.

use std::sync::Arc;

use callward_core::{CallMeta, List, ServerEvent, ToolServer, TraceContext, Watch};
use futures_util::StreamExt;
use serde_json::json;

use crate::failures::assert_documented;
use crate::script::{
    DISCOVERED, DISCOVERED_LISTENING, INITIALIZED, RESULT, Watching, call, calling, greeted,
    greeted_with, legacy, scripted,
};

#[tokio::test(start_paused = true)]
async fn arguments_and_results_go_through_byte_for_byte() {
    let (upstream, mut peer, _script) = legacy().await;
    let arguments = r#"{ "z": 1e2, "a":"\u0041", "n":12345678901234567890 ,"a":1 }"#;
    let result = r#"{ "content":[{"type":"hologram","x": 1.00}] ,"isError":false, "_meta":{"v":null},"vendor":[ ]}"#;
    let running = calling(&upstream, call("é\"", arguments));
    let asked = peer.asked("tools/call").await;
    let expected = format!(r#"{{"name":"é\"","arguments":{arguments}}}"#);
    assert_eq!(asked.params, expected);
    peer.reply(&asked, result).await;
    let output = running.await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(output.body()).unwrap(), result);
    // several lines stay one message
    let lines = call("x", "{\r\n  \"a\": \"\\n\"\n}");
    let asked = peer.serve(&upstream, lines).await;
    assert_eq!(asked.value()["arguments"], json!({"a": "\n"}));
}

#[tokio::test(start_paused = true)]
async fn the_metadata_of_a_call_reaches_a_server_of_either_era() {
    let meta = CallMeta::parse(br#"{"x/y":{"n":1.50},"progressToken":7}"#);
    let meta = meta.unwrap().map(Arc::new);
    for greeting in [INITIALIZED, DISCOVERED] {
        let (upstream, mut peer, _script) = greeted_with(greeting, 1 << 16, |_| {}).await;
        let mut call = call("x", "{}");
        call.context_mut().meta.clone_from(&meta);
        let sent = peer.serve(&upstream, call).await.value()["_meta"].take();
        assert_eq!(sent["x/y"], json!({"n": 1.50}), "{sent}");
        assert!(sent.get("progressToken").is_none(), "{sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_object_never_reach_the_pipe() {
    let (upstream, mut peer, _script) = legacy().await;
    for arguments in [
        "[]",
        "1",
        "{",
        "{\"a\":1}}",
        r#"{}},"x":{"#,
        "{}}}\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"wipe\"}}",
    ] {
        let error = upstream.call(call("x", arguments)).await.unwrap_err();
        assert_documented("the arguments are not a JSON object", &error);
    }
    // the first thing the server hears of is the call that is one
    let asked = peer.serve(&upstream, call("good", "{}")).await;
    assert_eq!(asked.value()["name"], "good");
}

#[tokio::test(start_paused = true)]
async fn a_raw_list_leaves_nothing_out() {
    let (upstream, mut peer, _script) = legacy().await;
    let listing = tokio::spawn(async move { upstream.list_raw().await });
    let asked = peer.asked("tools/list").await;
    let first = r#"{"tools":[{ "name":"a"}],"nextCursor":"2"}"#;
    peer.reply(&asked, first).await;
    let asked = peer.asked("tools/list").await;
    peer.reply(&asked, r#"{"tools":[{"name":7},"b"]}"#).await;
    let raw = listing.await.unwrap().unwrap();
    assert_eq!(raw, [r#"{ "name":"a"}"#, r#"{"name":7}"#, r#""b""#]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (upstream, mut peer, _script) = legacy().await;
    let running = calling(&upstream, call("x", "{}"));
    let asked = peer.asked("tools/call").await;
    running.abort();
    let params = peer.notified("notifications/cancelled").await;
    assert_eq!(params["requestId"].to_string(), asked.id.to_raw());
    // the answer that comes all the same does no harm
    peer.reply(&asked, RESULT).await;
    peer.serve(&upstream, call("y", "{}")).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_it_was_written_never_is() {
    let (upstream, mut peer, _script) = greeted(256, |_| {}).await;
    let long = format!(r#"{{"long":"{}"}}"#, "x".repeat(4096));
    let first = calling(&upstream, call("first", &long));
    tokio::task::yield_now().await; // the writer is now stuck in the middle of the first call
    let second = calling(&upstream, call("second", "{}"));
    tokio::task::yield_now().await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    let third = calling(&upstream, call("third", "{}"));
    for (running, name) in [(first, "first"), (third, "third")] {
        let asked = peer.asked("tools/call").await;
        assert_eq!(asked.value()["name"], name);
        peer.reply(&asked, RESULT).await;
        running.await.unwrap().unwrap();
    }
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(start_paused = true)]
async fn a_call_that_is_left_out_tells_its_server_so() {
    let (upstream, mut peer, _script) = legacy().await;
    let trace = TraceContext::parse(PARENT, None).unwrap();
    for trace in [Some(Arc::new(trace)), None] {
        let mut left_out = call("x", "{}");
        if let Some(trace) = &trace {
            left_out.context_mut().trace = Some(trace.clone());
        }
        left_out.context_mut().is_left_out = true;
        let asked = peer.serve(&upstream, left_out).await;
        let parent = asked.value()["_meta"]["traceparent"].clone();
        let reported = TraceContext::parse(parent.as_str().unwrap(), None).unwrap();
        assert!(!reported.is_sampled());
        // it goes on in the trace it came from, and begins one of its own otherwise
        let is_same = trace.is_some_and(|trace| trace.trace_id() == reported.trace_id());
        assert_eq!(is_same, parent == PARENT.replace("-01", "-00"));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_is_told_and_says_which_context_goes_out() {
    let (upstream, mut peer, _script) = legacy().await;
    let watching = Arc::new(Watching {
        own: TraceContext::parse(PARENT, None).ok(),
        ..Watching::default()
    });
    let watch: Watch = watching.clone();
    let listing = tokio::spawn(async move { upstream.list_tools_watched(watch).await });
    let asked = peer.asked("tools/list").await;
    assert_eq!(asked.value()["_meta"]["traceparent"], PARENT);
    peer.reply(&asked, r#"{"tools":[]}"#).await;
    listing.await.unwrap().unwrap();
    let reported = r#"pipe Some("2025-11-25") None None None false"#;
    assert_eq!(*watching.seen.lock(), [reported]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_asked_to_announce_changes_again_and_again() {
    let (upstream, mut script) = scripted(1 << 16, |_| {});
    let mut events = upstream.events().unwrap();
    let mut peer = script.accept().await;
    peer.refuse_initialize().await;
    let probe = peer.asked("server/discover").await;
    peer.reply(&probe, DISCOVERED_LISTENING).await;
    let listen = peer.asked("subscriptions/listen").await;
    let wanted = &listen.value()["notifications"];
    assert_eq!(*wanted, json!({"toolsListChanged": true}));
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    peer.line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}"#)
        .await;
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    peer.reply(&listen, r#"{"resultType":"complete","_meta":{}}"#)
        .await;
    // something may have changed in between
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    peer.asked("subscriptions/listen").await;
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_the_pipe_and_a_running_call_is_one() {
    let (upstream, mut peer, _script) = legacy().await;
    let running = calling(&upstream, call("x", "{}"));
    let asked = peer.asked("tools/call").await;
    drop(upstream);
    peer.reply(&asked, RESULT).await;
    running.await.unwrap().unwrap();
    assert!(peer.message().await.is_none(), "the pipe is closed");
}
