//! What `callward tools` tells about tools, and which it leaves out.

use serde_json::{Value, json};

use crate::scripted;
use crate::support::{CALLWARD, Gateway, ends, file, text};

fn sample<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--", CALLWARD, "sample"]].concat()
}

#[tokio::test]
async fn tools_are_listed_with_their_category() {
    let done = ends(&sample(&["tools", "--json"])).await;
    let tools: Vec<Value> = text(&done.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let delete = tool("delete_order");
    assert_eq!(delete["category"], "delete");
    assert_eq!(delete["annotations"]["destructiveHint"], true);
    let explained = ends(&sample(&["explain", "delete_order"])).await;
    let said = text(&explained.stdout);
    assert!(said.contains("category delete\n"), "{said}");
}

#[tokio::test]
async fn tools_are_grouped_by_safety_in_listing_order() {
    let plain = ends(&sample(&["tools", "--json"])).await;
    let done = ends(&sample(&["tools", "--by-safety", "--json"])).await;
    let read = |bytes: &[u8]| -> Vec<Value> {
        text(bytes)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (plain, grouped) = (read(&plain.stdout), read(&done.stdout));
    let mut want = Vec::new();
    for (group, effects) in [
        ("read_only", &["read_only"][..]),
        ("mutating", &["idempotent", "mutating"]),
        ("destructive", &["destructive"]),
    ] {
        let of_group = plain
            .iter()
            .filter(|tool| effects.iter().any(|effect| tool["effect"] == *effect));
        want.extend(of_group.map(|tool| (group.to_owned(), tool["name"].clone())));
    }
    let got: Vec<_> = grouped
        .iter()
        .map(|tool| {
            (
                tool["group"].as_str().unwrap().to_owned(),
                tool["name"].clone(),
            )
        })
        .collect();
    assert_eq!(got, want);

    let done = ends(&sample(&["tools", "--by-safety"])).await;
    let said = text(&done.stdout);
    let place = |what: &str| {
        said.find(what)
            .unwrap_or_else(|| panic!("{what} in {said}"))
    };
    assert!(place("Read-only: let the agent call freely") < place("get_order"));
    assert!(place("get_order") < place("Mutating: "));
    assert!(place("Mutating: ") < place("charge_card"));
    assert!(place("Destructive: confirm") < place("delete_order"));
}

#[tokio::test]
async fn only_tools_with_the_wanted_hints_are_listed() {
    let done = ends(&sample(&["tools", "--json", "--only", "readOnlyHint=true"])).await;
    let said = text(&done.stdout);
    assert!(said.lines().count() > 0);
    for line in said.lines() {
        let tool: Value = serde_json::from_str(line).unwrap();
        assert_eq!(tool["effect"], "read_only", "{tool}");
    }
    let both = [
        "tools",
        "--json",
        "--only",
        "readOnlyHint=true",
        "--only",
        "destructive=true",
    ];
    let done = ends(&sample(&both)).await;
    assert!(done.status.success());
    assert_eq!(text(&done.stdout), "");

    for (wrong, says) in [
        (
            "readonlyHint=true",
            "there is no hint `readonlyHint`: expected one of title",
        ),
        (
            "readOnlyHint=yes",
            "readOnlyHint is `yes`: expected true or false",
        ),
        ("readOnlyHint", "expected FIELD=VALUE"),
    ] {
        let done = ends(&sample(&["tools", "--only", wrong])).await;
        assert_eq!(done.status.code(), Some(2), "{wrong}");
        let said = text(&done.stderr);
        assert!(said.contains(says), "{wrong}: {said}");
    }
}

#[tokio::test]
async fn what_is_not_among_the_tools_is_told_beside_them() {
    let odd = json!({"readOnlyHint": true, "destructiveHint": true});
    let tools = json!([
        {"name": "get_a", "inputSchema": {"type": "object"}},
        {"name": "drop_b", "inputSchema": {"type": "object"}, "annotations": odd},
    ]);
    let config = format!(
        "{}[servers.shop.tools.get_aa]\nrequiresConfirmation = true\n[servers.dead]\ncommand = \"/nowhere/server\"\n",
        scripted::server("shop", &tools)
    );
    let config_file = file(&config);
    let path = config_file.path().to_str().unwrap();
    let gateway = Gateway::configured(&config).await;
    for place in [["--config", path], ["--url", gateway.admin.as_str()]] {
        let listed = ends(&[&["tools", "--json"], &place[..]].concat()).await;
        assert!(listed.status.success(), "{listed:?}");
        assert_eq!(text(&listed.stdout).lines().count(), 1, "{listed:?}");
        let sought = ends(&[&["explain", "shop__drop_b"], &place[..]].concat()).await;
        assert_eq!(sought.status.code(), Some(1), "{sought:?}");
        for done in [listed, sought] {
            let said = text(&done.stderr);
            for part in [
                "warning: server `dead` is down: /nowhere/server cannot be started",
                "warning: tool `drop_b` of server `shop` is not offered: ",
                "warning: tool `get_aa` of server `shop` is not offered: it is configured, but",
            ] {
                assert!(said.contains(part), "{part} in\n{said}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_for_one_server_goes_there_or_nowhere() {
    let gateway = Gateway::sample().await;
    let read = r#"{"order_id": 1}"#;
    let call = async |tool: &str, server: &str| {
        ends(&[
            "call",
            tool,
            read,
            "--server",
            server,
            "--url",
            &gateway.admin,
        ])
        .await
    };
    for server in ["orders-replica", "orders-primary", "orders-replica"] {
        let done = call("orders.get_order", server).await;
        assert!(done.status.success(), "{done:?}");
        let said = text(&done.stderr);
        let bypass = format!("server {server}  cache bypass (pinned)");
        assert!(said.contains(&bypass), "{bypass} in {said}");
    }
    for (tool, server, why) in [
        (
            "orders.delete_order",
            "orders-replica",
            "which has weight 20, below 50",
        ),
        (
            "orders.get_order",
            "ghost",
            "it has orders-primary, orders-replica",
        ),
    ] {
        let done = call(tool, server).await;
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        assert!(text(&done.stderr).contains(why), "{done:?}");
    }
    let done = call("orders.get_order", "a b").await;
    assert_eq!(done.status.code(), Some(2), "{done:?}");
}

#[tokio::test]
async fn a_name_that_no_path_can_carry_asks_for_nothing_else() {
    let gateway = Gateway::sample().await;
    for name in ["", ".", ".."] {
        for command in ["explain", "call"] {
            let done = ends(&[command, name, "{}", "--url", &gateway.admin]).await;
            assert_eq!(done.status.code(), Some(2), "{command} {name:?}");
            let said = text(&done.stderr);
            assert!(said.contains(&format!("the name {name:?}")), "{said}");
        }
    }
}
