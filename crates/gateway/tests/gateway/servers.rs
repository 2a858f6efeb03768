//! The servers as operators see them, taken out of service and back, and made lighter.

use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{Gateway, SERVE, callward, ends, until};

const PRIMARY: &str = "orders-primary";
const REPLICA: &str = "orders-replica";

/// Carries out an order of `callward servers`.
async fn order(gateway: &Gateway, args: &[&str]) {
    let done = ends(&[&["servers"], args, &["--url", &gateway.admin]].concat()).await;
    assert!(done.status.success(), "{done:?}");
}

async fn listed(gateway: &Gateway) -> Vec<Value> {
    gateway.json("/api/servers").await
}

/// Adds `count` notes, which no cache answers, and returns which servers added them.
async fn notes(gateway: &Gateway, count: usize) -> Vec<String> {
    let mut by = Vec::new();
    for _ in 0..count {
        let note = json!({"order_id": 1, "text": "x"});
        let done = gateway.call("orders__add_note", note).await;
        by.push(done["server"].as_str().unwrap_or("no server").to_owned());
    }
    by
}

#[tokio::test]
async fn the_json_and_the_metrics_tell_the_same() {
    let gateway = Gateway::sample().await;
    order(&gateway, &["drain", REPLICA]).await;
    assert_eq!(notes(&gateway, 3).await, [PRIMARY; 3]);

    let all = listed(&gateway).await;
    let ids: Vec<_> = all.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [PRIMARY, REPLICA]);
    let [primary, replica] = &all[..] else {
        unreachable!();
    };
    assert_eq!(primary["set"], "orders");
    assert_eq!(primary["up"], true);
    assert_eq!(primary["in_flight"], 0);
    assert_eq!(primary["calls"]["answers"], 3, "{primary}");
    assert_eq!(primary["error_rate"], 0.0);
    assert!(primary["tools"].as_u64().unwrap() > 3, "{primary}");
    for time in ["ewma_ms", "p50_ms", "p99_ms"] {
        assert!(primary[time].as_f64().unwrap() > 0.0, "{primary}");
        assert_eq!(replica[time], Value::Null, "{replica}");
    }
    assert_eq!(replica["calls"]["answers"], 0, "{replica}");

    gateway.measures(&[
        "callward_router_calls_in_flight{callward_server=\"orders-primary\",callward_server_set=\"orders\"} 0",
        "callward_router_calls_total{callward_outcome=\"answer\",callward_server=\"orders-primary\",callward_server_set=\"orders\"} 3",
        "callward_router_calls_total{callward_outcome=\"fault\",callward_server=\"orders-primary\",callward_server_set=\"orders\"} 0",
        "callward_router_weight{callward_server=\"orders-replica\",callward_server_set=\"orders\"} 20",
        "callward_router_state{callward_server=\"orders-replica\",callward_server_set=\"orders\",callward_state=\"draining\"} 1",
    ]).await;
    // one state each, also after it changed
    order(&gateway, &["undrain", REPLICA]).await;
    let (_, metrics) = gateway.get("/metrics").await;
    let states = metrics
        .lines()
        .filter(|line| line.starts_with("callward_router_state{"));
    assert_eq!(states.count(), 2, "{metrics}");
    assert!(!metrics.contains("state=\"draining\""), "{metrics}");
}

#[tokio::test]
async fn a_line_that_is_not_a_message_is_logged_once_as_a_warning() {
    let mut config = String::new();
    let printed = [
        "oops",
        "{",
        r"\377",
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    ];
    for (at, line) in printed.into_iter().enumerate() {
        let call = format!("printf '{line}\\n'; printf '{line}\\n'; says here");
        let script = Script {
            call: &call,
            ..Script::of_one("get_city")
        };
        config.push_str(&script.server(&format!("s{at}")));
        config.push_str("instances = \"shared\"\n");
    }
    let gateway = Gateway::configured(&config).await;
    for at in 0..printed.len() {
        let answer = gateway.call(&format!("s{at}__get_city"), json!({})).await;
        assert_eq!(answer["result"]["content"][0]["text"], "here", "{answer}");
    }
    let said = gateway.stopped().await;
    for at in 0..printed.len() {
        let of_server = |line: &&str| {
            line.contains("a line that is not a message") && line.contains(&format!("server=s{at}"))
        };
        let lines: Vec<_> = said.lines().filter(of_server).collect();
        assert_eq!(lines.len(), 1, "{at}: {said}");
        assert!(
            lines[0].contains(" WARN ") && lines[0].contains("error="),
            "{lines:?}"
        );
    }
}

#[tokio::test]
async fn a_name_stays_with_its_tool_after_a_restart() {
    let tools = json!([{"name": "add", "inputSchema": {"type": "object"}}]);
    let (one, two) = (Script::counting(&tools), Script::counting(&tools));
    let bare = |script: &Script<'_>, name: &str| format!("{}prefix = false\n", script.server(name));
    let first = Gateway::configured(&bare(&one, "one")).await;
    let path = first.config().to_owned();
    let state = Some(first.state.clone());
    // as soon as it is listed: the name is written before the end
    until("the tool is listed", || async {
        let (_, body) = first.get("/api/tools").await;
        body.contains("\"add\"").then_some(())
    })
    .await;
    first.stopped().await;
    // the newcomer stands first, and its name sorts first
    std::fs::write(&path, format!("{}{}", bare(&two, "a"), bare(&one, "one"))).unwrap();
    let command = callward(&[&SERVE[..], &["--config", &path]].concat());
    let second = Gateway::starting(command, None, state).await;
    let listed = until("both list their tools", || async {
        let (_, body) = second.get("/api/tools").await;
        (body.contains("a__add")).then_some(body)
    })
    .await;
    let owner = |name: &str| {
        let tools: Value = serde_json::from_str(&listed).unwrap();
        let tool = tools
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name);
        tool.map(|tool| tool["set"].as_str().unwrap().to_owned())
    };
    assert_eq!(owner("add").as_deref(), Some("one"), "{listed}");
}

#[tokio::test]
async fn of_many_refused_tools_ten_are_logged() {
    let tool = json!({"name": "add", "inputSchema": {"type": "object"}});
    let tools = Value::from(vec![tool; 31]);
    let gateway = Gateway::configured(&Script::counting(&tools).server("one")).await;
    until("the tools are listed", || async {
        let (_, body) = gateway.get("/api/missing").await;
        body.contains("listed twice").then_some(())
    })
    .await;
    let said = gateway.stopped().await;
    assert_eq!(said.matches("tool refused").count(), 10, "{said}");
    assert!(said.contains("20 more tools refused"), "{said}");
}
