//! What names a call to servers: one key for each call, the same over its attempts.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use callward_core::{IdempotencyKey, Purpose, ToolCall};
use callward_retry::RetryLayer;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{read, scripted};

/// Returns the keys of the attempts of a call.
async fn keys(call: ToolCall, results: &str) -> Vec<Option<IdempotencyKey>> {
    let server = scripted(results);
    let service = RetryLayer::default().layer(server.clone());
    service.oneshot(call).await.unwrap();
    let seen = server.seen();
    seen.iter().map(ToolCall::idempotency_key).collect()
}

#[tokio::test(start_paused = true)]
async fn all_attempts_of_a_call_carry_one_key_and_an_equal_call_another() {
    let same = read();
    let twice = "connection_lost? connection_lost? ok";
    let [one, other] = [keys(same.clone(), twice).await, keys(same, twice).await];
    for keys in [&one, &other] {
        assert!(keys[0].is_some() && *keys == vec![keys[0].clone(); 3]);
    }
    assert_ne!(one[0], other[0], "two calls are meant, so two keys");

    // a caller's own key is kept, and not used for a background call
    let own: IdempotencyKey = "payment-4711".parse().unwrap();
    let asked = read().with_idempotency_key(own.clone());
    assert_eq!(keys(asked.clone(), twice).await, vec![Some(own.clone()); 3]);
    let refresh = asked.in_background(Purpose::Refresh);
    assert_eq!(refresh.idempotency_key(), None);
    let key = keys(refresh, "ok").await.remove(0);
    assert!(key.is_some_and(|key| key != own));
}
