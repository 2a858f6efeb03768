//! `[toolsets]`: clients see a selection of tools, with notes that agents and operators write.

use std::sync::Arc;

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::audit::records;
use crate::scripted::{Script, tool};
use crate::support::{
    CALLWARD, Gateway, Legacy, Pipe, answer_of, answered, callward, ends, file, said, sample, text,
    until, within,
};

const ON: &str = "[toolsets]\nenabled = true\n";
const BUILT_IN: usize = 6;

/// A config with two servers that share a small shop.
fn config() -> String {
    format!("{ON}{}{}", sample("orders"), sample("other"))
}

/// Returns the structured answer of a built-in tool.
fn data(said: &str) -> Value {
    serde_json::from_str(said).unwrap_or_else(|_| panic!("{said}"))
}

/// The tools that a session lists.
async fn listed(client: &Legacy) -> Vec<Value> {
    let answer = client.post("tools/list", Some(7), json!({})).await;
    let answer = answer_of(&answer.text().await.unwrap());
    answer["result"]["tools"].as_array().unwrap().clone()
}

/// The tools that a modern client lists at the URL of this gateway.
async fn modern_listed(gateway: &Gateway) -> Vec<Value> {
    let (_, body) = answered(gateway.modern("tools/list", json!({}))).await;
    let answer = answer_of(&body);
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.filter(|name| name.contains("__")).collect()
}

fn description<'a>(tools: &'a [Value], name: &str) -> &'a str {
    let tool = tools.iter().find(|tool| tool["name"] == name);
    tool.unwrap()["description"].as_str().unwrap()
}

fn notes(names: &[&str]) -> Value {
    let notes = names
        .iter()
        .map(|name| json!({"name": name, "note": format!("Mind the {name}")}));
    json!({"toolRef": {"namespacedName": "orders.get_order"}, "notes": Vec::from_iter(notes)})
}

fn with_notes(own: &str, names: &[&str]) -> String {
    let lines = names
        .iter()
        .map(|name| format!("• **{name}**: Mind the {name}"));
    format!(
        "{own}\n\n### Additional Tool Notes\n\n{}",
        Vec::from_iter(lines).join("\n")
    )
}

/// Builds the toolset `work` of one tool by name and one by hash.
async fn build(client: &Legacy) -> Value {
    let available = data(&client.call("list-available-tools", json!({})).await);
    assert_eq!(
        available["summary"],
        json!({"totalServers": 2, "totalTools": 18})
    );
    let of_other = available["toolsByServer"][1]["tools"].as_array().unwrap();
    let stats = of_other
        .iter()
        .find(|tool| tool["name"] == "other__orders_stats")
        .unwrap();
    let tools = json!([{"namespacedName": "orders.get_order"}, {"refId": stats["refId"]}]);
    let work = json!({"name": "work", "description": "to look", "tools": tools});
    let built = data(&client.call("build-toolset", work.clone()).await);
    assert_eq!(
        built["meta"],
        json!({"success": true, "toolsetName": "work", "autoEquipped": false})
    );
    let again = client.call("build-toolset", work.clone()).await;
    assert!(again.contains("is called `work` already"), "{again}");
    // no tool is looked for then
    let mut huge = work;
    huge["tools"] = vec![json!({"refId": "00"}); 257].into();
    let refused = client.call("build-toolset", huge).await;
    assert!(refused.contains("more than 256"), "{refused}");
    built["toolset"].clone()
}

/// A gateway with this state directory, and the config that it always has there.
async fn gateway(state: &Arc<TempDir>) -> Gateway {
    let path = state.path().join("callward.toml");
    std::fs::write(&path, config().replace("CALLWARD", CALLWARD)).unwrap();
    let path = path.to_str().unwrap();
    let command = callward(&["serve", "--json", "--http", "127.0.0.1:0", "--config", path]);
    Gateway::started(command, None, Some(state.clone())).await
}

#[tokio::test]
async fn a_session_equips_a_toolset_and_notes_outlive_the_gateway() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let mut running = gateway(&state).await;
    let agent = Legacy::open(&running.url).await;
    let all = listed(&agent).await;
    assert_eq!(all.len(), 18 + BUILT_IN);
    let own = description(&all, "orders__get_order").to_owned();

    let refused = agent.call("add-tool-annotation", notes(&["usage"])).await;
    assert!(refused.contains("no toolset is equipped"), "{refused}");
    let refused = agent.call("equip-toolset", json!({"name": "work"})).await;
    assert!(refused.contains("no toolset is called `work`"), "{refused}");
    let toolset = build(&agent).await;
    assert_eq!(toolset["path"], "/mcp/t/work");
    assert_eq!(toolset["toolCount"], 2);
    // to find a tool by its hash alone, those of all tools are computed
    let file = std::fs::read_dir(state.path().join("toolsets")).unwrap();
    let file = file.map(|it| it.unwrap().path());
    let file = file.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let kept = std::fs::read(file.last().unwrap()).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let of_hash = &kept["toolsets"]["work"]["tools"][1];
    assert_eq!(of_hash["namespacedName"], "other.orders_stats");
    assert!(of_hash["refId"].is_string(), "{kept}");
    let equipped = data(&agent.call("equip-toolset", json!({"name": "work"})).await);
    assert_eq!(equipped["applied"], true, "{equipped}");
    let seen = listed(&agent).await;
    assert_eq!(names(&seen), ["orders__get_order", "other__orders_stats"]);
    assert_eq!(seen.len(), 2 + BUILT_IN);
    let outside = agent.call("orders__list_orders", json!({})).await;
    assert!(
        outside.starts_with("no tool \"orders__list_orders\""),
        "{outside}"
    );
    let inside = agent
        .call("orders__get_order", json!({"order_id": 1}))
        .await;
    assert!(!inside.starts_with("no tool"), "{inside}");

    // several in a call, each once, and none is replaced
    let added = data(
        &agent
            .call("add-tool-annotation", notes(&["usage", "limits"]))
            .await,
    );
    assert_eq!(added["toolset"], "work");
    assert_eq!(added["tool"]["namespacedName"], "orders.get_order");
    assert_eq!([&added["successCount"], &added["errorCount"]], [2, 0]);
    let mut more = notes(&["limits", "third", "third"]);
    more["notes"][0]["note"] = "Other words".into();
    let more = data(&agent.call("add-tool-annotation", more).await);
    assert_eq!([&more["successCount"], &more["errorCount"]], [1, 2]);
    for (at, name) in [(0, "limits"), (1, "third")] {
        let warning = more["warnings"][at].as_str().unwrap();
        let exists = format!("`{name}` exists already");
        assert!(warning.contains(&exists), "{more}");
    }
    let hydrated = with_notes(&own, &["usage", "limits", "third"]);
    assert_eq!(
        description(&listed(&agent).await, "orders__get_order"),
        hydrated
    );
    for (arguments, why) in [
        (
            json!({"toolRef": {"namespacedName": "orders.nothing"}}),
            "no tool \"orders.nothing\"",
        ),
        (
            json!({"toolRef": {"namespacedName": "orders.list_orders"}}),
            "is not in the toolset",
        ),
        (json!({"toolRef": {}}), "no tool \"\""),
        (
            json!({"notes": [{"name": "Bad_Name", "note": "x"}]}),
            "not a valid name",
        ),
        (
            json!({"notes": [{"name": "n", "note": "a\nb"}]}),
            "one line",
        ),
        (
            json!({"notes": [{"name": "n", "note": "a\u{202e}b"}]}),
            "invisible",
        ),
        (
            json!({"notes": [{"name": "n", "note": "x".repeat(501)}]}),
            "501 characters",
        ),
    ] {
        let mut wrong = notes(&["wrong"]);
        let members = arguments.as_object().unwrap().clone();
        wrong.as_object_mut().unwrap().extend(members);
        let refused = agent.call("add-tool-annotation", wrong).await;
        assert!(refused.contains(why), "{why}: {refused}");
    }

    // without the toolset there are no notes, and with it they are there again, for others too
    assert_eq!(
        data(&agent.call("unequip-toolset", json!({})).await)["applied"],
        true
    );
    let without = listed(&agent).await;
    assert_eq!(
        (without.len(), description(&without, "orders__get_order")),
        (24, &*own)
    );
    let other = Legacy::open(&running.url).await;
    for client in [&agent, &other] {
        client.call("equip-toolset", json!({"name": "work"})).await;
        assert_eq!(
            description(&listed(client).await, "orders__get_order"),
            hydrated
        );
    }
    let active = data(&other.call("get-active-toolset", json!({})).await);
    assert_eq!(active["equipped"], true);
    assert_eq!(active["toolset"]["name"], "work");
    assert_eq!(active["toolset"]["tools"].as_array().unwrap().len(), 2);

    // what was acknowledged outlives a crash
    running.killed().await;
    let running = gateway(&state).await;
    let agent = Legacy::open(&running.url).await;
    agent.call("equip-toolset", json!({"name": "work"})).await;
    assert_eq!(
        description(&listed(&agent).await, "orders__get_order"),
        hydrated
    );
}

#[tokio::test]
async fn a_modern_client_gets_a_toolset_by_its_path() {
    let mut gateway = Gateway::configured(&config()).await;
    build(&Legacy::open(&gateway.url).await).await;
    let before = modern_listed(&gateway).await;
    let own = description(&before, "orders__get_order").to_owned();
    let equipped = gateway.mcp("equip-toolset", json!({"name": "work"})).await;
    let equipped = &equipped["result"]["structuredContent"];
    assert_eq!(
        (&equipped["applied"], &equipped["path"]),
        (&json!(false), &json!("/mcp/t/work"))
    );
    // no call changes what this connection lists
    assert_eq!(modern_listed(&gateway).await, before);
    let unequipped = gateway.mcp("unequip-toolset", json!({})).await;
    assert_eq!(data(said(&unequipped))["message"], "you see all tools");
    // nothing ran, and nothing may still land
    let unfit = gateway.mcp("build-toolset", json!({"name": "x"})).await;
    assert_eq!(unfit["result"]["isError"], true, "{unfit}");
    assert_eq!(
        said(&unfit),
        "the arguments do not fit: missing field `tools`"
    );
    assert_eq!(
        gateway.json::<Value>("/api/cache").await["unsettled"],
        json!([])
    );
    let build = [
        "toolsets",
        "build",
        "some",
        "other.get_ordr",
        "other.get_order",
        "--config",
    ];
    let build = [&build[..], &[gateway.config()], &gateway.here()].concat();
    let done = ends(&build).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let warned = "warning: no tool \"other.get_ordr\"; did you mean orders__get_order";
    assert!(
        text(&done.stderr).starts_with(warned),
        "{}",
        text(&done.stderr)
    );
    assert_eq!(text(&done.stderr).lines().count(), 1);
    let some = format!("{}/t/some", gateway.url);
    let all = std::mem::replace(&mut gateway.url, some);
    let active = until("the gateway sees it", || async {
        let active = gateway.mcp_request("get-active-toolset", &json!({}), &json!({}));
        let (status, body) = answered(active).await;
        (status == 200).then_some(body)
    })
    .await;
    gateway.url = all;
    let warning = "1 of its tools are not there now: other.get_ordr";
    assert_eq!(
        data(said(&answer_of(&active)))["warnings"],
        json!([warning])
    );
    let refused = gateway.mcp("add-tool-annotation", notes(&["usage"])).await;
    assert!(
        refused.to_string().contains("no toolset is equipped"),
        "{refused}"
    );

    let everything = gateway.url.clone();
    gateway.url = format!("{everything}/t/work");
    assert_eq!(
        names(&modern_listed(&gateway).await),
        ["orders__get_order", "other__orders_stats"]
    );
    let added = gateway.mcp("add-tool-annotation", notes(&["usage"])).await;
    assert_eq!(
        added["result"]["structuredContent"]["successCount"], 1,
        "{added}"
    );
    let hydrated = with_notes(&own, &["usage"]);
    assert_eq!(
        description(&modern_listed(&gateway).await, "orders__get_order"),
        hydrated
    );
    let outside = gateway.mcp("orders__list_orders", json!({})).await;
    assert_eq!(outside["error"]["code"], -32602, "{outside}");
    assert!(gateway.order(1).await["result"].is_object());
    // sessions and a client that others wrote see the same there
    for mode in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover {
            preferred_versions: vec![rmcp::model::ProtocolVersion::V_2026_07_28],
        },
    ] {
        let client = gateway.connect(mode).await;
        let tools = within("the tools", client.list_all_tools()).await.unwrap();
        assert_eq!(tools.len(), 2 + BUILT_IN);
        let order = tools
            .iter()
            .find(|tool| tool.name == "orders__get_order")
            .unwrap();
        assert_eq!(order.description.as_deref(), Some(&*hydrated));
    }
    let fixed = Legacy::open(&gateway.url).await;
    let unequipped = data(&fixed.call("unequip-toolset", json!({})).await);
    assert_eq!(
        (&unequipped["applied"], &unequipped["path"]),
        (&json!(false), &json!("/mcp"))
    );
    assert_eq!(listed(&fixed).await.len(), 2 + BUILT_IN);

    gateway.url = format!("{everything}/t/none");
    let (status, body) = answered(gateway.modern("tools/list", json!({}))).await;
    assert_eq!(status, 404, "{body}");
    assert!(body.contains("no toolset is called \\\"none\\\""), "{body}");
}

/// Lists the tools after each notification of a change, until they are as expected.
async fn notified_of(agent: &mut Pipe, is_expected: impl Fn(&str) -> bool) -> String {
    loop {
        agent.notified("notifications/tools/list_changed").await;
        let seen = agent.raw_tools().await.concat();
        if is_expected(&seen) {
            return seen;
        }
    }
}

#[tokio::test]
async fn a_client_on_a_pipe_is_notified_when_its_toolset_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolsets.json");
    let config = file(format!("{ON}path = {path:?}\n"));
    let config = config.path().to_str().unwrap();
    let mut agent = Pipe::open(&["run", "--config", config, "--", CALLWARD, "sample"]).await;
    assert_eq!(agent.raw_tools().await.len(), 9 + BUILT_IN);
    let set = agent.call("list-available-tools", json!({})).await;
    let set = set["result"]["structuredContent"]["toolsByServer"][0]["serverName"].clone();
    let name = format!("{}.get_order", set.as_str().unwrap());
    let work = json!({"name": "work", "tools": [{"namespacedName": name}], "autoEquip": true});
    let built = agent.call("build-toolset", work).await;
    assert_eq!(
        built["result"]["structuredContent"]["meta"]["autoEquipped"], true,
        "{built}"
    );
    assert_eq!(agent.raw_tools().await.len(), 1 + BUILT_IN);
    let equipped = agent.call("unequip-toolset", json!({})).await;
    assert_eq!(
        equipped["result"]["structuredContent"]["applied"], true,
        "{equipped}"
    );
    assert_eq!(agent.raw_tools().await.len(), 9 + BUILT_IN);
    agent
        .send(
            "tools/call",
            json!({"name": "equip-toolset", "arguments": {"name": "work"}}),
        )
        .await;
    notified_of(&mut agent, |seen| !seen.contains("list_orders")).await;

    // another process edits the notes while the gateway runs
    for note in ["first", "second"] {
        let set = [
            "notes",
            "set",
            "work",
            &name,
            note,
            "Read it twice",
            "--config",
            config,
        ];
        let done = ends(&set).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let seen = notified_of(&mut agent, |seen| seen.contains("**second**")).await;
    assert!(
        seen.contains("• **first**: Read it twice\\n• **second**: Read it twice"),
        "{seen}"
    );
    let listed = ends(&["notes", "--config", config, "--json"]).await;
    let listed = data(text(&listed.stdout));
    assert_eq!(
        listed[0],
        json!({"toolset": "work", "tool": name, "name": "first", "note": "Read it twice"})
    );
    let remove = [
        "notes", "remove", "work", &name, "first", "--config", config,
    ];
    assert!(ends(&remove).await.status.success());
    notified_of(&mut agent, |seen| !seen.contains("**first**")).await;
    assert!(!ends(&remove).await.status.success());

    // an error in the file is the operator's to correct, and changes nothing for clients
    std::fs::write(&path, "{\"toolsets\": {\n\"work\": {}}}").unwrap();
    let refused = ends(&["toolsets", "--config", config]).await;
    assert!(text(&refused.stderr).contains("toolsets.json:2:10: missing field `tools`"));
    let mut note = notes(&["third"]);
    note["toolRef"]["namespacedName"] = name.into();
    let refused = agent.call("add-tool-annotation", note).await;
    assert!(
        refused.to_string().contains("the operator has to look"),
        "{refused}"
    );
    assert!(agent.raw_tools().await.concat().contains("**second**"));
    assert!(agent.close().await);
}

#[tokio::test]
async fn rules_and_the_audit_log_know_built_in_tools_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (log, path) = (
        folder.path().join("audit.jsonl"),
        folder.path().join("toolsets.json"),
    );
    // as operators write it, for who comes without a choice
    let tools = json!([
        {"namespacedName": "orders.get_order"}, {"namespacedName": "orders.add_note"},
    ]);
    let work = json!({"tools": tools, "defaultFor": ["anonymous"]});
    std::fs::write(&path, json!({"toolsets": {"work": work}}).to_string()).unwrap();
    let gateway = Gateway::configured(&format!(
        "{ON}path = {path:?}\n[audit]\npath = {log:?}\n[[authorize]]\nname = \"fixed\"\n\
         tool = [\"builtin.build-toolset\", \"orders.add_note\"]\nthen = \"deny\"\n{}",
        sample("orders")
    ))
    .await;
    let tools = modern_listed(&gateway).await;
    // a toolset shows nothing that the rules hide
    assert_eq!(names(&tools), ["orders__get_order"]);
    assert_eq!(tools.len(), BUILT_IN);
    let denied = gateway
        .mcp("build-toolset", json!({"name": "x", "tools": []}))
        .await;
    assert_eq!(denied["error"]["code"], -32602, "{denied}");
    let unequipped = gateway.mcp("unequip-toolset", json!({})).await;
    let why = "you see the toolset `work`, the operator's default: no path has all tools";
    assert!(said(&unequipped).contains(why), "{unequipped}");
    let mut hidden = notes(&["usage"]);
    hidden["toolRef"]["namespacedName"] = "orders.add_note".into();
    let hidden = gateway.mcp("add-tool-annotation", hidden).await;
    assert!(
        hidden.to_string().contains("no tool \\\"orders.add_note"),
        "{hidden}"
    );
    let added = gateway.mcp("add-tool-annotation", notes(&["usage"])).await;
    assert_eq!(
        added["result"]["structuredContent"]["successCount"], 1,
        "{added}"
    );
    gateway.stopped().await;
    let records = records(&log, "call");
    let of_note = records
        .iter()
        .filter(|record| record["tool"] == "add-tool-annotation");
    assert_eq!(of_note.count(), 2, "{records:?}");
}

#[tokio::test]
async fn a_tool_of_a_server_never_has_the_name_of_a_built_in_one() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let tools = json!([tool("build-toolset", true), tool("get_x", true)]);
    let server = format!(
        "{}prefix = false\n",
        Script::counting(&tools).server("mine")
    );
    let path = state.path().join("callward.toml");
    // the names of the first run do not count against it
    for (config, of_server) in [(server.clone(), true), (format!("{ON}{server}"), false)] {
        std::fs::write(&path, config).unwrap();
        let command = callward(&[
            "serve",
            "--json",
            "--http",
            "127.0.0.1:0",
            "--config",
            path.to_str().unwrap(),
        ]);
        let gateway = Gateway::started(command, None, Some(state.clone())).await;
        let answer = gateway.mcp("build-toolset", json!({})).await;
        assert_eq!(answer.to_string().contains("run 1"), of_server, "{answer}");
        if !of_server {
            let answer = gateway.mcp("mine__build-toolset", json!({})).await;
            assert!(answer.to_string().contains("run "), "{answer}");
        }
        gateway.stopped().await;
    }
    let config = file(format!("{ON}{}", Script::of_one("x").server("builtin")));
    let refused = ends(&[
        "serve",
        "--check",
        "--config",
        config.path().to_str().unwrap(),
    ])
    .await;
    let said = text(&refused.stderr);
    assert!(
        said.contains("no server or set with the name `builtin`"),
        "{said}"
    );
    let damaged = file("{\n  \"version\": 1,\n");
    let place = damaged.path().to_str().unwrap();
    let config = file(format!("{ON}path = {}\n{server}", json!(place)));
    let path = config.path().to_str().unwrap();
    let refused = ends(&["serve", "--check", "--config", path]).await;
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains(place), "{said}");
}
