//! The layers without the stack: what one needs to know of another travels with the call.

use std::time::Duration;

use callward::cache::{CacheConfig, CacheLayer};
use callward::retry::RetryLayer;
use callward::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::load_shed::error::Overloaded;
use tower::{ServiceBuilder, ServiceExt};

#[tokio::test(start_paused = true)]
async fn a_cache_above_a_retry_knows_that_a_write_may_land_twice() {
    // the first attempt is given up on: it may land after the second was answered
    let server = MockService::new(|_, n| async move {
        match n {
            1 => Err(ToolError::new(
                ErrorKind::Timeout,
                Delivery::Unknown,
                "no answer",
            )),
            _ => Ok(ToolOutput::text(n.to_string())),
        }
    });
    let service = ServiceBuilder::new()
        .layer(CacheLayer::new(CacheConfig::default()))
        .layer(RetryLayer::default())
        .service(server.clone());
    let ask = async |tool| {
        let answer = service.clone().oneshot(call(&tool, json!({}))).await;
        answer.unwrap().to_text()
    };
    let set = || tool("set").idempotent().build();
    let get = || tool("get").read_only().build();
    assert_eq!(ask(set()).await, "2");
    assert_eq!(ask(get()).await, "3");
    assert_eq!(
        ask(get()).await,
        "4",
        "nothing is kept until it has settled"
    );
    assert_eq!(ask(set()).await, "5", "nor is the write's own answer");
}

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
