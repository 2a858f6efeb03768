//! What names a call to servers: one key for each call, the same over its attempts.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use callward_core::{IdempotencyKey, Purpose, ToolCall};
use callward_retry::RetryLayer;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{read, scripted};

/// Returns the keys of the attempts of a call that fails twice.
async fn keys(call: ToolCall) -> Vec<Option<IdempotencyKey>> {
    let server = scripted("connection_lost? connection_lost? ok");
    let service = RetryLayer::default().layer(server.clone());
    service.oneshot(call).await.unwrap();
    server
        .seen()
        .iter()
        .map(ToolCall::idempotency_key)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn all_attempts_of_a_call_carry_one_key_and_an_equal_call_another() {
    let same = read();
    let [one, other] = [keys(same.clone()).await, keys(same).await];
    for keys in [&one, &other] {
        assert_eq!(keys.len(), 3);
        assert!(
            keys[0].is_some() && keys.iter().all(|key| *key == keys[0]),
            "{keys:?}"
        );
    }
    assert_ne!(one[0], other[0], "two calls are meant, so two keys");
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_key_is_kept_and_not_used_for_a_background_call() {
    let own: IdempotencyKey = "payment-4711".parse().unwrap();
    let asked = read().with_idempotency_key(own.clone());
    assert_eq!(keys(asked.clone()).await, vec![Some(own.clone()); 3]);

    let refresh = asked.in_background(Purpose::Refresh);
    assert_eq!(refresh.idempotency_key(), None);
    let server = scripted("ok");
    let service = RetryLayer::default().layer(server.clone());
    service.oneshot(refresh).await.unwrap();
    let key = server.seen()[0].idempotency_key();
    assert!(key.is_some_and(|key| key != own));
}
