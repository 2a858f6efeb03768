//! The limits of a whole stack, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use callward::limit::Cap;
use callward::{Delivery, ErrorKind, LimitsConfig, Server, Stack, ToolOutput, Trust};
use callward_testkit::{MockServer, MockService};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{alone, fails, failure, has, tool, up};

fn limits() -> LimitsConfig {
    LimitsConfig::default()
}

/// A server with a tool that supports twelve calls a minute, and one that says nothing.
fn server(service: &MockService) -> Arc<MockServer> {
    let tools = vec![
        tool("rare", json!({"rateLimitHint": 12})),
        tool("plain", json!({})),
    ];
    MockServer::new("a", tools, service.clone())
}

async fn built(
    server: Arc<MockServer>,
    limits: LimitsConfig,
    set: impl FnOnce(Server) -> Server,
) -> Stack {
    let builder = Stack::builder().server(set(Server::shared(server.clone())));
    up(builder.limits(limits), &[&server]).await
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_hint_is_held_to_without_any_setting() {
    for trust in [Trust::Trusted, Trust::Standard, Trust::Untrusted] {
        let service = MockService::counting();
        let stack = built(server(&service), limits(), |server| server.trust(trust)).await;
        let start = Instant::now();
        let calls = (0..4).map(|_| stack.call("a.rare", json!({})));
        assert!(join_all(calls).await.iter().all(Result::is_ok));
        assert_eq!(start.elapsed().as_secs(), 10, "two at once, then each 5 s");
        let status = stack.limits();
        let [rate] = &status.rates[..] else {
            panic!("{status:?}")
        };
        assert_eq!((rate.calls_per_minute, rate.waited), (12.0, 2));
        for _ in 0..100 {
            stack.call("a.plain", json!({})).await.unwrap();
        }
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_counts_against_the_rate() {
    let service = MockService::new(|_, n| async move {
        match n % 2 {
            1 => Err(failure(ErrorKind::ServerFault, Delivery::Answered)),
            _ => Ok(ToolOutput::text(n.to_string())),
        }
    });
    let hints = json!({"rateLimitHint": 12, "readOnlyHint": true});
    let (stack, _) = alone(Stack::builder(), vec![tool("get_rare", hints)], &service).await;
    // the first call takes both cells of the burst
    stack.call("s.get_rare", json!({"q": 1})).await.unwrap();
    let start = Instant::now();
    stack.call("s.get_rare", json!({"q": 2})).await.unwrap();
    assert!(start.elapsed().as_secs() >= 9, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_says_nothing_gets_the_time_the_operator_gives() {
    let (service, _gate) = MockService::gated();
    let mut limits = limits();
    limits.attempt_timeout = Some(Duration::from_secs(90));
    limits.progress_cap = Cap::Times(2);
    let stack = built(server(&service), limits, |server| server).await;
    let start = Instant::now();
    let error = fails(&stack, "a.plain").await;
    assert_eq!(start.elapsed().as_secs(), 90);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    has(cause, &["timeout of 90s", "180s"]);
}
