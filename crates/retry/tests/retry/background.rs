//! Calls that the runtime makes by itself.

use callward_core::{Delivery, ErrorKind, InvalidConfig, Purpose, ToolCall, ToolError};
use callward_retry::{RetryConfig, RetryLayer};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

fn read() -> ToolCall {
    call(
        &tool("get_order").set("orders").read_only().build(),
        json!({}),
    )
}

fn timing_out() -> MockService {
    MockService::new(|_, _| async {
        let kind = ErrorKind::Timeout;
        Err(ToolError::new(kind, Delivery::Unknown, "no answer"))
    })
}

fn with_reserve(tokens: u32) -> Result<RetryLayer, InvalidConfig> {
    RetryLayer::new(RetryConfig::default().with_budget_reserve(tokens))
}

#[tokio::test(start_paused = true)]
async fn a_refresh_stands_in_for_its_callers_and_costs_what_their_call_would() {
    let (layer, mock) = (with_reserve(0).unwrap(), MockService::counting());
    let service = layer.layer(mock.clone());
    for _ in 0..5 {
        let refresh = read().in_background(Purpose::Refresh);
        service.clone().oneshot(refresh).await.unwrap();
    }
    assert_eq!((mock.started(), layer.budgets()[0].tokens), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_is_not_retried() {
    let mock = timing_out();
    let service = with_reserve(50).unwrap().layer(mock.clone());
    let refresh = read().in_background(Purpose::Refresh);
    let error = service.oneshot(refresh).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(mock.started(), 1);
    let mock = timing_out();
    let service = with_reserve(50).unwrap().layer(mock.clone());
    service.oneshot(read()).await.unwrap_err();
    assert_eq!(mock.started(), 3, "as a caller's is");
}
