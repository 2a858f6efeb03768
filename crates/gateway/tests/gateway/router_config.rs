//! What a config says of the router: it is heeded, not only read.

use serde_json::{Value, json};

use crate::events::Follower;
use crate::support::{Gateway, ends, http, signal, within};

/// Two servers of one set, with these settings for all, for the first and for the second.
fn two(all: &str, first: &str, second: &str) -> String {
    let server = |id: &str, more: &str| {
        format!(
            "[servers.{id}]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\nset = \"shop\"\n{more}\n"
        )
    };
    format!("{all}\n{}{}", server("a", first), server("b", second))
}

/// Adds a note, which no cache answers.
async fn note(gateway: &Gateway, order: u32) -> Value {
    let note = json!({"order_id": order, "text": "x"});
    gateway.call("shop__add_note", note).await
}

#[tokio::test]
async fn what_costs_too_much_goes_where_it_costs_less_or_nowhere() {
    let gateway = Gateway::configured(&two(
        "[router]\nstrategy = \"round_robin\"\ncost_budget = 1.0",
        "cost_factor = 0.5\n[servers.a.tools.add_note]\ncostHint = 2",
        "",
    ))
    .await;
    for _ in 0..4 {
        assert_eq!(note(&gateway, 1).await["server"], "a");
    }
    let done = ends(&["servers", "drain", "a", "--url", &gateway.admin]).await;
    assert!(done.status.success(), "{done:?}");
    let refused = note(&gateway, 1).await;
    assert_eq!(refused["error"]["kind"], "no_eligible_server", "{refused}");
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("a is drained"), "{said}");
    assert!(said.contains("budget"), "{said}");
}

#[tokio::test]
async fn a_tool_with_tags_goes_to_the_server_that_can() {
    let gateway = Gateway::configured(&two(
        "[router]\nstrategy = \"capability\"",
        "[servers.a.tools.add_note]\ntags = [\"gpu\"]",
        "capabilities = [\"gpu\"]\nzone = \"eu\"",
    ))
    .await;
    for _ in 0..4 {
        assert_eq!(note(&gateway, 1).await["server"], "b");
    }
}

#[tokio::test]
async fn calls_about_one_thing_stay_together() {
    let gateway = Gateway::configured(&two(
        "[router]\nstrategy = \"affinity\"\n[router.affinity]\nby = \"/order_id\"\nttl = \"1h\"",
        "",
        "",
    ))
    .await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let mut plain = Follower::of(&gateway, &[]).await;
    let first = note(&gateway, 1).await["server"].clone();
    for _ in 0..6 {
        assert_eq!(note(&gateway, 1).await["server"], first);
    }
    let server = first.as_str().unwrap();
    let set = raw.event("affinitySet", "server", server).await;
    assert_eq!(
        (&set["by"], &set["ttl_ms"], &set["set"]),
        (&json!("argument"), &json!(3_600_000), &json!("shop")),
        "{set}"
    );
    let goes = format!("in shop goes to {server} for 1h");
    let is_it = |line: &str| line.starts_with("affinity  argument ") && line.ends_with(&goes);
    plain.finds(&goes, is_it).await;
}

#[tokio::test]
async fn an_unanswered_ping_opens_the_breaker_until_one_is_answered() {
    let gateway = Gateway::configured(&two(
        "[breaker.server]\nfailures = 1\nopen_for = \"100ms\"\n[router.ping]\ninterval = \"100ms\"",
        "",
        "",
    ))
    .await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let url = gateway.at("/api/tools/shop__orders_stats/call?server=a");
    let ask = json!({"ask": "pid"});
    let answer = within("the pid", http().post(url).json(&ask).send()).await;
    let stats: Value = serde_json::from_str(&answer.unwrap().text().await.unwrap()).unwrap();
    let pid = &stats["result"]["structuredContent"]["pid"];
    let pid = u32::try_from(pid.as_u64().unwrap()).unwrap();
    signal("-STOP", pid).await;
    let gone = raw.event("healthUpdate", "server", "a").await;
    assert_eq!(gone["to"], "open", "{gone}");
    assert_eq!(gone["reason"], "a failure: it answers no pings", "{gone}");
    signal("-CONT", pid).await;
    let back = raw.event("healthUpdate", "to", "healthy").await;
    assert_eq!(back["server"], "a", "{back}");
    assert_eq!(back["reason"], "a probe succeeded", "{back}");
}
