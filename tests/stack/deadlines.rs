//! One deadline for all attempts, in the whole stack.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::time::Duration;

use callward::core::ServerEvent;
use callward::{ErrorKind, Server, Stack, ToolOutput};
use callward_testkit::{MockServer, MockService};
use serde_json::json;
use tokio::time::Instant;

/// A server that says nothing to this many calls, and answers the next ones at once.
async fn stack(silent: usize, limit: Duration) -> (Stack, MockService) {
    let mock = MockService::new(move |_, n| async move {
        if n <= silent {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::text("here"))
    });
    let tool = json!({"name": "get_order", "annotations": {"readOnlyHint": true}});
    let server = MockServer::new("shop", vec![tool], mock.clone());
    let up = server.clone();
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        up.emit(&ServerEvent::Up);
    });
    let stack = Stack::builder()
        .call_deadline(limit)
        .server(Server::shared(server))
        .build();
    (stack.await.unwrap(), mock)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_not_answered_leaves_time_for_another() {
    let limit = Duration::from_secs(10);
    let (stack, mock) = stack(1, limit).await;
    let start = Instant::now();
    let answer = stack.call("shop.get_order", json!({})).await.unwrap();
    assert_eq!(answer.to_text(), "here");
    assert_eq!(mock.started(), 2);
    assert!(start.elapsed() < limit * 2 / 3, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_uses_all_attempts_within_the_deadline() {
    let limit = Duration::from_secs(10);
    let (stack, mock) = stack(usize::MAX, limit).await;
    let start = Instant::now();
    let error = stack.call("shop.get_order", json!({})).await.unwrap_err();
    assert_eq!(start.elapsed(), limit);
    assert_eq!(mock.started(), 3);
    let kinds: Vec<_> = error.history().iter().map(|attempt| attempt.kind).collect();
    assert_eq!(
        kinds,
        [
            ErrorKind::Timeout,
            ErrorKind::Timeout,
            ErrorKind::DeadlineExceeded
        ]
    );
}
