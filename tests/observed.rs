//! A tool that is not what its hints say, found out while it runs.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use tollgate::cache::CacheConfig;
use tollgate::{Server, Stack};
use tollgate_core::{CacheRule, ReplicaSetId, ServerEvent, Source, ToolName};
use tollgate_retry::RetryConfig;
use tollgate_testkit::{MockServer, MockService};

async fn turns() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Builds a stack that checks every hit, around a server that answers otherwise each time.
async fn stack(mock: &MockService, retry: RetryConfig) -> Stack {
    let tools = vec![
        json!({"name": "get_a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}),
    ];
    let server = MockServer::new("s", tools, mock.clone());
    let mut cache = CacheConfig::default();
    cache.verify_per_thousand = 1000;
    let building = Stack::builder()
        .server(Server::shared(server.clone()))
        .cache(cache)
        .retry(retry)
        .build();
    let building = tokio::spawn(building);
    turns().await;
    server.emit(&ServerEvent::Up);
    building.await.unwrap().unwrap()
}

async fn text(stack: &Stack) -> String {
    let answer = stack.call("s.get_a", json!({})).await.unwrap();
    turns().await;
    answer.to_text()
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_answers_change_is_found_out_explained_and_taken_back() {
    let mock = MockService::counting();
    let stack = stack(&mock, RetryConfig::default()).await;
    let mut changes = stack.changes();
    while changes.next().now_or_never().is_some() {}

    assert_eq!([text(&stack).await, text(&stack).await], ["1", "1"]);
    assert_eq!(
        mock.started(),
        2,
        "the call, and a look whether it was right"
    );
    assert_eq!([text(&stack).await, text(&stack).await], ["3", "4"]);

    let catalogue = stack.catalogue();
    let tool = catalogue.find("s.get_a").unwrap().tool();
    assert_eq!(tool.plan().cache, CacheRule::Bypass);
    let volatile = tool.resolved().volatility().unwrap();
    assert_eq!(volatile.source(), Source::Observed);
    let told = stack.explain("s.get_a").unwrap().to_string();
    assert!(
        told.contains("neither looked up nor kept: seen while it ran"),
        "{told}"
    );
    assert!(changes.next().now_or_never().is_some(), "clients are told");
    assert_eq!(stack.observations().len(), 1);

    let (set, name) = (
        ReplicaSetId::new("s").unwrap(),
        ToolName::new("get_a").unwrap(),
    );
    assert!(stack.take_back(&set, &name));
    assert!(!stack.take_back(&set, &name));
    assert!(stack.observations().is_empty());
    assert_eq!([text(&stack).await, text(&stack).await], ["5", "5"]);
}

#[tokio::test(start_paused = true)]
async fn checks_end_with_the_retry_budget() {
    let mock = MockService::new(|_, _| async { Ok(tollgate_core::ToolOutput::text("a")) });
    let retry = RetryConfig::default()
        .with_budget_reserve(3)
        .with_budget_percent(0);
    let stack = stack(&mock, retry).await;
    for _ in 0..20 {
        text(&stack).await;
    }
    assert_eq!(mock.started(), 1 + 3);
    let stats = stack.cache_stats();
    assert_eq!(
        (stats.hits, stats.checks, stats.unclear_checks),
        (19, 3, 16)
    );
}
