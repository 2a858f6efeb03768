//! Layers of Tower around ours: their errors become errors of calls.

use std::time::Duration;

use callward::{Delivery, ErrorKind, ToolError};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::load_shed::error::Overloaded;
use tower::{ServiceBuilder, ServiceExt};

#[tokio::test(start_paused = true)]
async fn errors_of_tower_s_layers_are_errors_of_calls() {
    let refused = ToolError::new(ErrorKind::RateLimited, Delivery::NotSent, "later");
    let within = refused.clone();
    let server = MockService::new(move |_, n| {
        let refused = within.clone();
        async move {
            match n {
                1 => Err(refused),
                _ => std::future::pending().await,
            }
        }
    });
    let service = ServiceBuilder::new()
        .map_err(callward::tool_error)
        .buffer(4)
        .timeout(Duration::from_secs(5))
        .service(server);
    let ask = || {
        let get = tool("get").read_only().build();
        service.clone().oneshot(call(&get, json!({})))
    };
    let error = ask().await.unwrap_err();
    assert_eq!(error.to_string(), refused.to_string());
    let error = ask().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.delivery()),
        (ErrorKind::Timeout, Delivery::Unknown)
    );
    let shed = callward::tool_error(Box::new(Overloaded::new()));
    assert_eq!(
        (shed.kind(), shed.delivery()),
        (ErrorKind::Overloaded, Delivery::NotSent)
    );
    let other = callward::tool_error("broken".into());
    assert_eq!(
        (other.kind(), other.delivery()),
        (ErrorKind::ServerFault, Delivery::Unknown)
    );
}
