//! What names a call to servers: one key for each call, the same over its attempts.

use callward_core::{
    Delivery, ErrorKind, IdempotencyKey, Purpose, ToolCall, ToolError, ToolOutput,
};
use callward_retry::RetryLayer;
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{ServiceBuilder, ServiceExt};

/// Fails twice out of three times, so that each call is attempted three times.
fn failing_twice() -> MockService {
    MockService::new(|_, n| async move {
        match n % 3 {
            0 => Ok(ToolOutput::text("done")),
            _ => Err(ToolError::new(
                ErrorKind::ConnectionLost,
                Delivery::Unknown,
                "scripted",
            )),
        }
    })
}

async fn run(server: &MockService, calls: Vec<ToolCall>) -> Vec<Vec<Option<IdempotencyKey>>> {
    let service = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .service(server.clone());
    let mut keys = Vec::new();
    for call in calls {
        let before = server.started();
        let _ = service.clone().oneshot(call).await;
        let key_of = |call: &ToolCall| call.idempotency_key();
        keys.push(server.seen()[before..].iter().map(key_of).collect());
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn all_attempts_of_a_call_carry_one_key_and_an_equal_call_carries_another() {
    let read = tool("read").read_only().build();
    let same = call(&read, json!({"id": 7}));
    let server = failing_twice();
    let keys = run(&server, vec![same.clone(), same]).await;
    assert_eq!(
        server.started(),
        5,
        "three attempts and, as the reserve is 3, two"
    );
    for of_call in &keys {
        assert!(of_call[0].is_some());
        assert!(of_call.iter().all(|key| *key == of_call[0]), "{keys:?}");
    }
    assert_ne!(keys[0][0], keys[1][0], "two calls are meant, so two keys");
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_key_is_kept() {
    let own: IdempotencyKey = "payment-4711".parse().unwrap();
    let read = tool("read").read_only().build();
    let asked = call(&read, json!({})).with_idempotency_key(own.clone());
    let keys = run(&failing_twice(), vec![asked]).await;
    assert_eq!(keys, [vec![Some(own); 3]]);
}

#[tokio::test(start_paused = true)]
async fn a_call_made_in_the_background_is_another_call() {
    let own: IdempotencyKey = "payment-4711".parse().unwrap();
    let read = tool("read").read_only().build();
    let asked = call(&read, json!({})).with_idempotency_key(own.clone());
    let refresh = asked.in_background(Purpose::Refresh);
    assert_eq!(refresh.idempotency_key(), None);
    let keys = run(&MockService::counting(), vec![refresh]).await;
    assert!(keys[0][0].as_ref().is_some_and(|key| *key != own));
}
