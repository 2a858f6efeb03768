//! The servers as operators and clients see them: their state, tools, names and instructions.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::scripted::{Script, tool};
use crate::support::{Gateway, Legacy, SERVE, callward, result, sample, until};

#[tokio::test]
async fn the_json_and_the_metrics_tell_the_same() {
    let gateway = Gateway::sample().await;
    let (status, _) = gateway
        .post("/api/servers/orders-replica/drain", "application/json", "")
        .await;
    assert_eq!(status, 200);
    for _ in 0..3 {
        let note = json!({"order_id": 1, "text": "x"});
        let done = gateway.call("orders__add_note", note).await;
        assert_eq!(done["server"], "orders-primary");
    }
    let all: Vec<Value> = gateway.json("/api/servers").await;
    let [primary, replica] = &all[..] else {
        panic!("{all:?}");
    };
    for (key, one, other) in [
        ("id", json!("orders-primary"), json!("orders-replica")),
        ("set", json!("orders"), json!("orders")),
        ("up", json!(true), json!(true)),
        ("in_flight", json!(0), json!(0)),
        ("error_rate", json!(0.0), Value::Null),
        ("tools", json!(9), json!(9)),
    ] {
        assert_eq!((&primary[key], &replica[key]), (&one, &other), "{key}");
    }
    assert_eq!(primary["calls"]["answers"], 3, "{primary}");
    assert_eq!(replica["calls"]["answers"], 0, "{replica}");
    for time in ["ewma_ms", "p50_ms", "p99_ms"] {
        assert!(primary[time].as_f64().unwrap() > 0.0, "{primary}");
        assert_eq!(replica[time], Value::Null, "{replica}");
    }
    let of = |server: &str| {
        format!("callward_server=\"orders-{server}\",callward_server_set=\"orders\"")
    };
    let (primary, replica) = (of("primary"), of("replica"));
    gateway
        .measures(&[
            &format!("callward_router_calls_in_flight{{{primary}}} 0"),
            &format!("callward_router_calls_total{{callward_outcome=\"answer\",{primary}}} 3"),
            &format!("callward_router_calls_total{{callward_outcome=\"fault\",{primary}}} 0"),
            &format!("callward_router_weight{{{replica}}} 20"),
            &format!("callward_router_state{{{replica},callward_state=\"draining\"}} 1"),
        ])
        .await;
    // one state each
    let (_, metrics) = gateway.get("/metrics").await;
    assert_eq!(metrics.matches("\ncallward_router_state{").count(), 2);
}

#[tokio::test]
async fn different_slow_reads_run_at_the_same_time() {
    let gateway = Gateway::sample().await;
    let report = |n: usize| json!({"region": format!("r{n}"), "delay_ms": 5_000});
    let all = (0..64).map(|n| gateway.mcp("orders__sales_report", report(n)));
    for (n, answer) in join_all(all).await.iter().enumerate() {
        let region = &result(answer)["structuredContent"]["region"];
        assert_eq!(*region, format!("r{n}"), "{answer}");
    }
    let stats = gateway.stats("orders").await;
    assert_eq!(stats["tools"]["sales_report"]["executions"], 64, "{stats}");
    assert_eq!(stats["tools"]["sales_report"]["peak"], 64, "{stats}");
}

#[tokio::test]
async fn a_missing_server_makes_the_gateway_unready_and_hides_no_other() {
    let gone = "[servers.gone]\ncommand = \"/nonexistent/server\"\n";
    let alone = Gateway::configured(gone).await;
    let (status, body) = alone.get("/readyz").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (503, &json!(false)));
    assert!(body["servers"][0]["error"].is_string(), "{body}");
    assert_eq!(alone.get_url(&alone.public("/healthz")).await.0, 200);

    let both = Gateway::configured(&format!("{gone}{}", sample("here"))).await;
    assert_eq!(both.get("/readyz").await.0, 200);
    result(&both.call("here__get_order", json!({"order_id": 1})).await);
}

#[tokio::test]
async fn a_name_stays_with_its_tool_after_a_restart() {
    let script = Script::counting(&json!([tool("add", false)]));
    let bare = |name: &str| format!("{}prefix = false\n", script.server(name));
    let first = Gateway::configured(&bare("one")).await;
    let path = first.config().to_owned();
    let state = Some(first.state.clone());
    let listed = async |gateway: &Gateway, name: &str| {
        until("the tool is listed", || async {
            let tools: Vec<Value> = gateway.json("/api/tools").await;
            tools
                .iter()
                .any(|tool| tool["name"] == name)
                .then_some(tools)
        })
        .await
    };
    // as soon as it is listed: the name is written before the end
    listed(&first, "add").await;
    first.stopped().await;
    // the newcomer stands first, and its name sorts first
    std::fs::write(&path, bare("a") + &bare("one")).unwrap();
    let command = callward(&[&SERVE[..], &["--config", &path]].concat());
    let second = Gateway::starting(command, None, state).await;
    let tools = listed(&second, "a__add").await;
    let owner = tools.iter().find(|tool| tool["name"] == "add");
    assert_eq!(owner.unwrap()["set"], "one", "{tools:?}");
}

#[tokio::test]
async fn of_many_refused_tools_ten_are_logged() {
    let tools = Value::from(vec![tool("add", false); 31]);
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

#[tokio::test]
async fn instructions_stand_under_the_names_of_servers_also_of_a_late_one() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let kind = Script {
        each: r#"more=',"instructions":"Be kind."'"#,
        ..Script::of_one("look")
    };
    let late = Script {
        each: r#"[ -e "$argument" ] || exit 1; more=',"instructions":"Be quick."'"#,
        argument: ready.to_str().unwrap(),
        ..Script::of_one("see")
    };
    let instructions = async |gateway: &Gateway| {
        let client = Legacy::open(&gateway.url).await;
        client.hello["result"]["instructions"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let alone = Gateway::configured(&kind.server("kind")).await;
    assert_eq!(instructions(&alone).await, "Be kind.");
    let gateway = Gateway::configured(&(kind.server("kind") + &late.server("late"))).await;
    assert_eq!(instructions(&gateway).await, "# kind\n\nBe kind.");
    std::fs::write(&ready, "").unwrap();
    let both = until("the late server", || async {
        let said = instructions(&gateway).await;
        said.contains("late").then_some(said)
    })
    .await;
    assert_eq!(both, "# kind\n\nBe kind.\n\n# late\n\nBe quick.");
    // nothing is shown of a server without a tool for the caller
    let rule = "[[authorize]]\ntool = [\"late.*\"]\nthen = \"deny\"\n";
    let all = kind.server("kind") + &late.server("late");
    let gateway = Gateway::fixed(&format!("{rule}{all}")).await;
    assert_eq!(instructions(&gateway).await, "# kind\n\nBe kind.");
}
