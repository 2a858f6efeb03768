//! Servers that keep state for their client: each session has an instance of its own.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{Gateway, Legacy, ends, text, until};

/// A tool that counts, and one that says it reads.
fn tools() -> Value {
    json!([
        {"name": "add", "inputSchema": {"type": "object"}},
        {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
    ])
}

/// A server that does this on each call; more lines of its section follow.
fn doing(call: &str, more: &str) -> String {
    let server = Script {
        call,
        ..Script::counting(&tools())
    };
    format!("{}{more}\n", server.server("counter"))
}

/// A server that counts its calls in memory.
fn counter(more: &str) -> String {
    doing("", more)
}

async fn add(client: &Legacy) -> String {
    client.call("counter__add", json!({})).await
}

/// Makes this many sessions count to three at the same time, each on its own.
async fn each_counts_for_itself(url: &str, sessions: usize) {
    let clients = join_all((0..sessions).map(|_| Legacy::open(url))).await;
    for run in 1..=3 {
        for reported in join_all(clients.iter().map(add)).await {
            assert_eq!(reported, format!("run {run}"));
        }
    }
    for client in clients {
        client.end().await;
    }
}

/// Returns the instances of the only server.
async fn instances(gateway: &Gateway) -> Vec<Value> {
    let servers: Value = gateway.json("/api/servers").await;
    servers[0]["instances"].as_array().unwrap().clone()
}

#[tokio::test]
async fn sessions_see_nothing_of_each_other() {
    // in front of children; and of an HTTP server that speaks both eras, and keeps state in the
    // sessions of the earlier one
    for era in ["", "era = \"auto\"", "era = \"legacy\""] {
        let inner = Gateway::configured(&counter("max_instances = 64")).await;
        let (mut outer, mut url) = (None, &inner.url);
        if !era.is_empty() {
            let server = format!("[servers.counter]\nurl = {url:?}\nprefix = false\n{era}\n");
            let gateway = Gateway::configured(&(server + "max_instances = 64")).await;
            url = &outer.insert(gateway).url;
        }
        each_counts_for_itself(url, 2).await;
        each_counts_for_itself(url, 50).await;
        // what ended with its session is gone
        let is_owned = |one: &Value| one["owner"].as_str().is_some_and(|it| it.contains('/'));
        until("the end of all", || async {
            let all = instances(&inner).await;
            (!all.iter().any(is_owned)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_hundred_reading_sessions_in_a_row_start_two_processes() {
    let started = tempfile::NamedTempFile::new().unwrap();
    let server = Script {
        each: r#"[ -n "$seen" ] || { seen=1; echo "$$" >>"$argument"; }"#,
        call: "says here",
        argument: started.path().to_str().unwrap(),
        ..Script::counting(&tools())
    };
    let gateway = Gateway::configured(&server.server("counter")).await;
    for _ in 0..100 {
        let client = Legacy::open(&gateway.url).await;
        assert_eq!(client.call("counter__read", json!({})).await, "here");
        client.end().await;
    }
    gateway.stopped().await;
    let started = std::fs::read_to_string(started.path()).unwrap();
    assert!(started.lines().count() <= 2, "{started}");
}

#[tokio::test]
async fn a_session_after_one_that_may_have_changed_state_begins_anew() {
    let undeclared = json!([
        {"name": "search_docs", "inputSchema": {"type": "object"}},
        {"name": "list_docs", "inputSchema": {"type": "object"}},
    ]);
    let undeclared = Script::counting(&undeclared).server("counter");
    for (config, calls) in [
        (counter(""), &["add", "read"][..]),
        (undeclared, &["search_docs"]),
    ] {
        let gateway = Gateway::configured(&config).await;
        for number in 0..3 {
            let client = Legacy::open(&gateway.url).await;
            for (run, tool) in (1..).zip(calls) {
                let tool = format!("counter__{tool}");
                let answer = client.call(&tool, json!({"query": number})).await;
                assert_eq!(answer, format!("run {run}"), "{tool}");
            }
            client.end().await;
        }
        gateway.stopped().await;
    }
}

#[tokio::test]
async fn beyond_the_limit_a_call_names_the_key_and_a_shared_server_has_none() {
    let gateway = Gateway::configured(&counter("max_instances = 2")).await;
    let clients = join_all((0..3).map(|_| Legacy::open(&gateway.url))).await;
    for run in ["run 1", "run 2"] {
        assert_eq!([add(&clients[0]).await, add(&clients[1]).await], [run; 2]);
        let refused = add(&clients[2]).await;
        assert!(refused.contains("max_instances"), "{refused}");
    }
    let gateway = Gateway::configured(&counter("instances = \"shared\"")).await;
    for run in 1..=3 {
        let client = Legacy::open(&gateway.url).await;
        assert_eq!(add(&client).await, format!("run {run}"));
    }
}

#[tokio::test]
async fn a_session_whose_instance_crashes_is_alone_with_it_and_is_shown() {
    let call = r#"case $line in *crash*) exit 3 ;; esac; says "run $runs""#;
    let gateway = Gateway::configured(&doing(call, "")).await;
    let (bad, good) = (
        Legacy::open(&gateway.url).await,
        Legacy::open(&gateway.url).await,
    );
    // the first one has the instance that lists the tools
    assert_eq!(add(&bad).await, "run 1");
    let all = until("the spare one", || async {
        let all = instances(&gateway).await;
        all.iter().any(|one| one["state"] == "spare").then_some(all)
    })
    .await;
    let own = all.iter().find(|one| one["calls"] == 1).unwrap();
    let owner = own["owner"].as_str().unwrap();
    assert!(owner.starts_with("anonymous/"), "{owner}");
    assert_eq!(own["state"], "up");
    assert!(own["startup_ms"].as_f64().unwrap() > 0.0);
    let memory = own["memory"].as_u64();
    assert!(!cfg!(target_os = "linux") || memory > Some(10_000), "{own}");
    let shown = ends(&[&["servers"], &gateway.here()[..]].concat()).await;
    assert!(text(&shown.stdout).contains(owner), "{shown:?}");
    for run in 1..=6 {
        let crashed = bad.call("counter__add", json!({"crash": run})).await;
        assert!(!crashed.starts_with("run"), "{crashed}");
        assert_eq!(add(&good).await, format!("run {run}"));
    }
}
