//! What goes wrong over a pipe, and what is said of the calls it happened to.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, List, ServerEvent, ToolServer};
use callward_mcp::client::{Io, Target, UpstreamOptions, UpstreamStatus};
use callward_mcp::wire::Message;
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::failures::assert_documented;
use crate::script::{
    LONG, RESULT, assert_fails, call, calling, greeted, legacy, listing, scripted, start,
};

#[tokio::test(start_paused = true)]
async fn a_lost_connection_says_which_calls_may_have_run_and_comes_back() {
    let (upstream, mut script) = scripted(256, |_| {});
    let mut events = upstream.events().unwrap();
    let mut peer = script.accept().await;
    peer.initialize().await;
    assert_eq!(events.next().await, Some(ServerEvent::Up));

    let written = calling(&upstream, call("written", "{}"));
    peer.asked("tools/call").await;
    let long = format!(r#"{{"long":"{}"}}"#, "x".repeat(4096));
    let begun = calling(&upstream, call("begun", &long));
    tokio::task::yield_now().await; // the writer is stuck in the middle of it
    let queued = calling(&upstream, call("queued", "{}"));
    tokio::task::yield_now().await;
    drop(peer);
    let error = written.await.unwrap().unwrap_err();
    assert_documented("the connection is lost after that", &error);
    let error = begun.await.unwrap().unwrap_err();
    assert_documented("a pipe breaks before it has taken", &error);
    let error = queued.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(matches!(events.next().await, Some(ServerEvent::Down(_))));

    let mut peer = script.accept().await;
    let error = upstream.call(call("down", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(error.message.contains("is down"), "{error}");
    peer.initialize().await;
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    peer.serve(&upstream, call("after", "{}")).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_a_server_lost_is_told_when_it_is_back() {
    for comes_back in [true, false] {
        let (upstream, mut script) = scripted(256, |_| {});
        let before = upstream.call(call("early", "{}")).await.unwrap_err();
        assert!(before.reopening.is_none(), "there was nothing to lose");
        let mut peer = script.accept().await;
        peer.initialize().await;
        upstream.ready(LONG).await.unwrap();
        let mut events = upstream.events().unwrap();
        assert_eq!(events.next().await, Some(ServerEvent::Up));
        drop(peer);
        assert!(matches!(events.next().await, Some(ServerEvent::Down(_))));
        let lost_at = Instant::now();
        // it is there again, and does not greet yet
        let mut peer = script.accept().await;
        let lost = upstream.call(call("x", "{}")).await.unwrap_err();
        assert_fails(&lost, ErrorKind::ConnectFailed, Delivery::NotSent);
        let back = tokio::spawn(lost.reopening.as_ref().unwrap()());
        tokio::task::yield_now().await;
        assert!(!back.is_finished());
        if comes_back {
            let start = Instant::now();
            peer.initialize().await;
            back.await.unwrap();
            assert_eq!(start.elapsed(), Duration::ZERO);
            peer.serve(&upstream, call("x", "{}")).await;
        } else {
            back.await.unwrap();
            assert_eq!(lost_at.elapsed(), Duration::from_secs(5));
            let error = upstream.call(call("x", "{}")).await.unwrap_err();
            assert!(error.reopening.is_none(), "the time is unknown");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_tried_for_ever() {
    let attempts = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = attempts.clone();
    let io = Io::new(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async { Err(std::io::Error::other("not reachable")) }
    });
    let upstream = start(Target::Io(io), |_| {});
    let error = upstream
        .ready(Duration::from_secs(3600))
        .await
        .expect_err("no connection");
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(error.message.contains("not reachable"), "{error}");
    // pauses of 2.5 to 5 s over an hour
    let attempts = attempts.load(std::sync::atomic::Ordering::Relaxed);
    assert!((720..1500).contains(&attempts), "{attempts}");
    let error = upstream.list_tools().await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    upstream.shutdown().await;
    assert_eq!(upstream.status(), UpstreamStatus::Closed);
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert!(error.message.contains("shut down"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_message_beyond_the_limit_fails_its_own_call_and_no_other() {
    let set = |options: &mut UpstreamOptions| options.max_message = 1024;
    let (upstream, mut peer, _script) = greeted(1 << 16, set).await;
    let other = calling(&upstream, call("other", "{}"));
    let other_asked = peer.asked("tools/call").await;
    let long = "x".repeat(2000);
    for id_is_last in [false, true] {
        let running = calling(&upstream, call("x", "{}"));
        let id = peer.asked("tools/call").await.id;
        let result = format!(r#""result":{{"content":"{long}","id":{}}}"#, other_asked.id);
        peer.line(&match id_is_last {
            true => format!(r#"{{"jsonrpc":"2.0",{result},"id":{id}}}"#),
            false => format!(r#"{{"id":{id},{result},"jsonrpc":"2.0"}}"#),
        })
        .await;
        let error = running.await.unwrap().unwrap_err();
        assert_documented("an answer, or an event of one, longer", &error);
        for word in ["1024 bytes", "`max_message`"] {
            assert!(error.message.contains(word), "{error}");
        }
    }
    // neither a notification nor a request is an answer, whatever its id
    let params = format!(r#""params":{{"x":"{long}"}}"#);
    peer.line(&format!(r#"{{"jsonrpc":"2.0","method":"n",{params}}}"#))
        .await;
    let id = &other_asked.id;
    peer.line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},{params},"method":"m"}}"#
    ))
    .await;
    match peer.message().await {
        Some(Message::Response {
            id: Some(of),
            outcome: Err(error),
        }) => assert!(of == *id && error.message.contains("1024"), "{error}"),
        other => panic!("{other:?}"),
    }
    peer.reply(&other_asked, RESULT).await;
    other.await.unwrap().unwrap();
    assert_eq!(upstream.status(), UpstreamStatus::Up);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_is_an_error() {
    let (upstream, mut peer, _script) = legacy().await;
    let listing = listing(&upstream);
    peer.asked("tools/list").await; // and silence
    let error = listing.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::Timeout, Delivery::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_is_not_queued_for_without_bound() {
    let (upstream, mut peer, _script) = greeted(256, |_| {}).await;
    let large = format!(r#"{{"large":"{}"}}"#, "x".repeat(4 << 20));
    let mut refused = None;
    for _ in 0..20 {
        // no call waits long, and queued calls stay in the queue
        let call = upstream.call(call("x", &large));
        if let Ok(answer) = tokio::time::timeout(Duration::from_secs(1), call).await {
            refused = Some(answer.unwrap_err());
            break;
        }
    }
    let error = refused.expect("a call that found no space");
    assert_documented("over 64 MiB wait", &error);
    assert!(error.message.contains("does not read"), "{error}");

    // it reads again: there is space again, and nothing was sent without a waiting call
    let running = calling(&upstream, call("after", "{}"));
    peer.asked("tools/call").await;
    peer.notified("notifications/cancelled").await;
    let asked = peer.asked("tools/call").await;
    assert_eq!(asked.value()["name"], "after");
    peer.reply(&asked, RESULT).await;
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn unread_changes_of_the_tools_are_one_event() {
    let (upstream, mut peer, _script) = legacy().await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    for _ in 0..100 {
        peer.line(changed).await;
    }
    peer.line(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)
        .await;
    // answered, so all of it was read
    let pong = peer.message().await;
    let is_pong = matches!(pong, Some(Message::Response { outcome: Ok(_), .. }));
    assert!(is_pong, "{pong:?}");
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    let second = tokio::time::timeout(LONG, events.next()).await;
    assert!(second.is_err(), "{second:?}");
    peer.line(changed).await;
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_connection_that_is_still_being_made() {
    let io = Io::new(std::future::pending);
    let upstream = start(Target::Io(io), |_| {});
    tokio::task::yield_now().await;
    tokio::time::timeout(Duration::from_secs(1), upstream.shutdown())
        .await
        .expect("at once");
}
