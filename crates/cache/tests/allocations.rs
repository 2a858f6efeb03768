//! A hit allocates nothing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callward_cache::{CacheConfig, CacheLayer, Store};
use callward_core::{ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Layer, Service};

/// Calls once, without a runtime, and returns the answer that must be there at once.
fn answer<S>(service: &mut S, call: ToolCall) -> Option<ToolOutput>
where
    S: Service<ToolCall, Response = ToolOutput>,
{
    match pin!(service.call(call)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(output)) => Some(output),
        _ => None,
    }
}

fn stores() -> Vec<Arc<dyn Store>> {
    vec![
        Arc::new(callward_cache::MokaStore::new(1 << 20)),
        #[cfg(feature = "lean")]
        Arc::new(callward_cache::LeanStore::new(1 << 20)),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_hit_allocates_nothing() {
    for store in stores() {
        let mock = MockService::counting();
        let mut cache = CacheLayer::with_store(CacheConfig::default(), store).layer(mock);
        let get = tool("get").read_only().build();
        let set = tool("set").idempotent().build();
        for tool in [get, set] {
            let call = call(&tool, json!({"id": 1, "value": "x"}));
            assert!(answer(&mut cache, call.clone()).is_some());
            // the first hit of a thread makes the place in which the thread counts the tool's hits
            assert!(answer(&mut cache, call.clone()).is_some());
            for _ in 0..2 {
                let call = call.clone();
                let info = allocation_counter::measure(|| {
                    assert!(answer(&mut cache, call).is_some());
                });
                assert_eq!(info.count_total, 0, "{info:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hit_by_another_spelling_allocates_nothing_either() {
    let mock = MockService::counting();
    let mut cache = CacheLayer::default().layer(mock.clone());
    let get = tool("get").read_only().build();
    for _ in 0..2 {
        assert!(answer(&mut cache, call(&get, json!({"a": [1, 2], "b": "x"}))).is_some());
    }
    let other = ToolCall::new(get, r#"{ "b" : "x", "a" : [ 1 , 2 ] }"#);
    let info = allocation_counter::measure(|| {
        assert!(answer(&mut cache, other).is_some());
    });
    assert_eq!(mock.started(), 1);
    assert_eq!(info.count_total, 0, "{info:?}");
}
