//! Instances of a server over pipes: started for an owner's call, and ended with its session.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Caller, Delivery, ErrorKind, Instances, List, Principal, ServerEvent, SessionId, Tool,
    ToolCall, ToolServer,
};
use callward_mcp::client::{Upstream, UpstreamStatus};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;

use crate::script::{LONG, Peer, RESULT, Script, assert_fails, calling, greeted, listing, tool_of};

pub(crate) fn caller(principal: &str, session: &str) -> Arc<Caller> {
    let caller = Caller::new(Principal::new(principal));
    Arc::new(caller.with_session(SessionId::new(session)))
}

/// A call of a tool whose server keeps state for each session.
pub(crate) fn call(caller: &Arc<Caller>, read_only: bool) -> ToolCall {
    let definition = json!({"name": "x", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": read_only}});
    let mut tool = Tool::clone(&tool_of(&definition.to_string()));
    tool.instances = Instances::Session;
    ToolCall::new(Arc::new(tool), "{}").with_caller(caller.clone())
}

fn write(session: &str) -> ToolCall {
    call(&caller("ada", session), false)
}

/// An upstream without spare instances, and what is connected first.
async fn lead(idle: Duration) -> (Upstream, Peer, Script) {
    greeted(1 << 16, |options| (options.spare, options.idle) = (0, idle)).await
}

async fn answer(peer: &mut Peer) {
    let asked = peer.asked("tools/call").await;
    peer.reply(&asked, RESULT).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_be_started_was_sent_nothing() {
    let (upstream, mut first, script) = lead(LONG).await;
    first.serve(&upstream, write("1")).await;
    drop(script);
    let error = upstream.call(write("2")).await;
    let error = error.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(error.message.contains("the script is over"), "{error}");
}

async fn count(peer: &mut Peer, number: u32) {
    let asked = peer.asked("tools/call").await;
    let result = format!(r#"{{"content":[{{"type":"text","text":"{number}"}}]}}"#);
    peer.reply(&asked, &result).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_equal_reads_differ_serves_no_other_session() {
    let (upstream, mut first, mut script) = lead(LONG).await;
    let [one, two] = [caller("ada", "1"), caller("ada", "2")];
    for number in 1..=2 {
        let running = calling(&upstream, call(&one, true));
        count(&mut first, number).await;
        running.await.unwrap().unwrap();
    }
    upstream.session_ended(&one);
    let running = calling(&upstream, call(&two, true));
    let mut second = script.accept().await;
    // the one that lists the tools is started again, and its era is known
    second.initialize().await;
    count(&mut second, 1).await;
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_is_cancelled_before_its_instance_ends() {
    let (upstream, mut first, mut script) = lead(LONG).await;
    first.serve(&upstream, write("1")).await;
    let eve = caller("eve", "1");
    let running = calling(&upstream, call(&eve, false));
    let mut second = script.accept().await;
    second.initialize().await;
    second.asked("tools/call").await;
    upstream.session_ended(&eve);
    running.abort();
    second.notified("notifications/cancelled").await;
    assert!(second.message().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_instance_ends_and_the_next_call_starts_another() {
    let idle = Duration::from_secs(60);
    let (upstream, mut first, mut script) = lead(idle).await;
    first.serve(&upstream, write("1")).await;
    let eve = caller("eve", "1");
    // the one that lists the tools is idle too: the second time it is started first
    for _ in 1..=2 {
        let running = calling(&upstream, call(&eve, false));
        let mut peer = script.accept().await;
        peer.initialize().await;
        answer(&mut peer).await;
        running.await.unwrap().unwrap();
        let since = tokio::time::Instant::now();
        assert!(peer.message().await.is_none());
        assert!(since.elapsed() >= idle);
    }
}

#[tokio::test(start_paused = true)]
async fn the_listing_instance_ends_with_a_session_that_wrote() {
    let (upstream, mut first, mut script) = lead(LONG).await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    first.serve(&upstream, write("1")).await;
    upstream.session_ended(&caller("ada", "1"));
    assert!(first.message().await.is_none(), "its input is closed");
    drop(first);
    // it is not down: there is no event, and a ping starts nothing
    let idle = async {
        while upstream.status() != UpstreamStatus::Idle {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, idle).await.unwrap();
    upstream.ready(Duration::ZERO).await.unwrap();
    upstream.ping().await.unwrap();
    assert_eq!(events.next().now_or_never(), None);
    assert!(upstream.instance_statuses().is_empty());

    // the next session has a fresh one, whose tools may be others
    let running = calling(&upstream, write("2"));
    let mut second = script.accept().await;
    second.initialize().await;
    answer(&mut second).await;
    running.await.unwrap().unwrap();
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    assert_eq!(events.next().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn a_listing_instance_that_crashed_for_one_session_may_list_anything() {
    let (upstream, mut first, mut script) = lead(LONG).await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    first.serve(&upstream, write("1")).await;
    drop(first);
    let restarted = async {
        let mut second = script.accept().await;
        second.initialize().await;
        second
    };
    let (event, _second) = tokio::join!(events.next(), restarted);
    assert_eq!(event, Some(ServerEvent::Stale));
    for list in List::ALL {
        let event = events.next().await;
        assert_eq!(event, Some(ServerEvent::ListChanged(*list)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_listing_instance_is_started_to_list() {
    let (upstream, mut first, mut script) = lead(LONG).await;
    first.serve(&upstream, write("1")).await;
    upstream.session_ended(&caller("ada", "1"));
    // asked before it has ended
    let listing = listing(&upstream);
    assert!(first.message().await.is_none());
    let mut second = script.accept().await;
    second.initialize().await;
    let asked = second.asked("tools/list").await;
    second.reply(&asked, r#"{"tools":[]}"#).await;
    assert_eq!(listing.await.unwrap().unwrap().len(), 0);
    // and it serves the next session
    second
        .serve(&upstream, call(&caller("eve", "1"), false))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_in_flight_is_answered_before_its_instance_ends() {
    let (upstream, mut first, _script) = lead(LONG).await;
    first.serve(&upstream, write("1")).await;
    let listing = listing(&upstream);
    let asked = first.asked("tools/list").await;
    upstream.session_ended(&caller("ada", "1"));
    first.reply(&asked, r#"{"tools":[]}"#).await;
    listing.await.unwrap().unwrap();
    assert!(first.message().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_a_listing_instance_that_is_started_again() {
    let (upstream, mut first, mut script) = lead(LONG).await;
    first.serve(&upstream, write("1")).await;
    upstream.session_ended(&caller("ada", "1"));
    assert!(first.message().await.is_none());
    drop(first);
    let running = calling(&upstream, write("2"));
    let mut second = script.accept().await;
    second.asked("initialize").await;
    upstream.shutdown().await;
    assert!(second.message().await.is_none());
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert_eq!(upstream.status(), UpstreamStatus::Closed);
}
