//! The counts of calls, and searches by them.

use std::time::Duration;

use callward::core::{List, ServerEvent};
use callward::registry::Query;
use callward::{Delivery, ErrorKind, Stack, ToolOutput};
use callward_testkit::MockService;
use serde_json::json;
use tokio::time::sleep;

use crate::bed::{alone, failure, read, turns, write};

#[tokio::test(start_paused = true)]
async fn counts_outlive_a_new_definition_and_a_hit_is_no_run() {
    let service = MockService::new(|_, n| async move {
        sleep(Duration::from_millis(10)).await;
        match n {
            2 => Err(failure(ErrorKind::InvalidCall, Delivery::Answered)),
            3 => Ok(ToolOutput::error_text("no")),
            _ => Ok(ToolOutput::text("done")),
        }
    });
    let tools = vec![read("get"), write("put")];
    let (stack, server) = alone(Stack::builder(), tools, &service).await;
    let call = async |tool: &str| stack.call(tool, json!({})).await.is_ok();
    assert!(call("s.get").await && call("s.get").await);
    assert!(!call("s.put").await);
    assert!(call("s.put").await);

    let mut changed = write("put");
    changed["description"] = "another".into();
    server.set_tools(Ok(vec![read("get"), changed]));
    server.emit(&ServerEvent::ListChanged(List::Tools));
    sleep(Duration::from_secs(5)).await;
    turns().await;
    let put = stack.catalogue().find("s.put").unwrap().clone();
    assert_eq!(
        put.tool().definition.description.as_deref(),
        Some("another")
    );
    assert!(call("s.put").await);

    let all = serde_json::to_value(stack.statistics()).unwrap();
    let row = |row: &serde_json::Value| {
        let number = |name: &str| row[name].as_f64().unwrap();
        let rates = [number("success_rate"), number("cached_rate")];
        (
            number("calls"),
            number("failed"),
            rates.map(|rate| (rate * 100.0).round()),
        )
    };
    assert_eq!(row(&all["tools"][0]), (2.0, 0.0, [100.0, 50.0]), "{all}");
    assert_eq!(row(&all["tools"][1]), (3.0, 2.0, [33.0, 0.0]), "{all}");
    // the server got no call that the cache answered: 4 of 5
    assert_eq!(row(&all["servers"][0]), (4.0, 2.0, [50.0, 20.0]), "{all}");
    for of in ["tools", "servers"] {
        assert_eq!(all[of][0]["mean_ms"], 10.0, "{all}");
        let p99 = all[of][0]["p99_ms"].as_f64().unwrap();
        assert!((10.0..12.5).contains(&p99), "{all}");
    }

    let mut query = Query::default();
    query.set("sort", "success-rate").unwrap();
    query.set("available", "true").unwrap();
    let names = || {
        let found = stack.search(&query, |_| true);
        let names = found
            .tools
            .iter()
            .map(|entry| entry.client_name().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(), "s__put s__get");
    server.emit(&ServerEvent::Down("gone".to_owned()));
    turns().await;
    assert_eq!(names(), "");
}
