//! Servers that come, go, change and fail: one of them never hides another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::FreshnessMode;
use callward::{Delivery, ErrorKind, Server, Stack, ToolError, ToolOutput};
use callward_core::ServerEvent;
use callward_testkit::{MockServer, MockService};
use futures_util::StreamExt;
use serde_json::json;

use crate::bed::{alone, fails, failure, has, read, refused, turns, up, write};

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_hides_no_other_and_appears_when_it_comes_up() {
    let good = MockServer::new("good", vec![read("get_a")], MockService::counting());
    let late = MockServer::new("late", vec![read("get_b")], MockService::counting());
    late.set_tools(Err(refused()));
    let builder = Stack::builder().server(Server::shared(good.clone()));
    let builder = builder.server(Server::shared(late.clone()));
    let stack = up(builder, &[&good, &late]).await;
    stack.call("good.get_a", json!({})).await.unwrap();
    let error = fails(&stack, "late.get_b").await;
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    let text = "; server `late` is not connected and may offer it";
    assert!(error.message.ends_with(text), "{error}");
    let status = &stack.servers()[1];
    assert!(!status.up, "{status:?}");
    has(status.last_error.as_ref().unwrap(), &["it failed"]);

    let mut changes = stack.changes();
    late.set_tools(Ok(vec![read("get_b")]));
    late.emit(&ServerEvent::Up);
    changes.next().await.unwrap();
    stack.call("late.get_b", json!({})).await.unwrap();
    assert!(stack.servers()[1].up);
    let error = fails(&stack, "late.get_c").await;
    assert!(!error.message.contains("connected"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_server_that_was_added_first_chooses_its_names_first() {
    for fails in [false, true] {
        let first = MockServer::new("z", vec![read("get_a")], MockService::counting());
        if fails {
            first.set_tools(Err(refused()));
        }
        let other = MockServer::new("a", vec![read("get_a")], MockService::counting());
        let mut builder = Stack::builder();
        for server in [&first, &other] {
            builder = builder.server(Server::shared(server.clone()).prefix(None));
        }
        let building = tokio::spawn(builder.build());
        // the second one lists its tools first
        for server in [&other, &first] {
            turns().await;
            turns().await;
            server.emit(&ServerEvent::Up);
        }
        let stack = building.await.unwrap().unwrap();
        let catalogue = stack.catalogue();
        let owner = catalogue.find("get_a").unwrap().tool().set();
        assert_eq!(owner.as_str(), if fails { "a" } else { "z" });
        assert!(catalogue.find("a__get_a").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_denies_a_write_it_runs_leaves_no_stale_read() {
    for kind in ["rate_limited", "unauthorized", "connect_failed"] {
        let notes = Arc::new(AtomicUsize::new(0));
        let server = MockService::new(move |call, _| {
            let notes = notes.clone();
            async move {
                if call.tool().name().as_str() == "count" {
                    let count = notes.load(Ordering::Relaxed);
                    return Ok(ToolOutput::text(count.to_string()));
                }
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    notes.fetch_add(1, Ordering::Relaxed);
                });
                let data = format!(r#"{{"kind":"{kind}","delivery":"not_sent"}}"#);
                let error = failure(ErrorKind::RateLimited, Delivery::Answered);
                Err(error
                    .with_code(ToolError::RUNTIME_CODE)
                    .with_data(data.into()))
            }
        });
        let builder = Stack::builder().freshness(FreshnessMode::Fixed);
        let (stack, _server) = alone(builder, vec![read("count"), write("add")], &server).await;
        let count = async || stack.call("s.count", json!({})).await.unwrap().to_text();
        assert_eq!(count().await, "0");
        fails(&stack, "s.add").await;
        assert_eq!(count().await, "0");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count().await, "1", "{kind}");
    }
}
