//! Standing permission, decisions about several requests, and what is always approved.

use serde_json::{Value, json};

use crate::approvals::{DELETE, approvals, config, deleted, id, order, pending};
use crate::audit::records;
use crate::support::{Gateway, ends, result, text};

const WHEN: &str = r#"{"order_id": {"one_of": [1, 2, 3]}}"#;
const TOOL: &str = "orders.delete_order";

#[tokio::test]
async fn a_grant_answers_as_many_calls_as_it_says_until_it_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = format!("[audit]\npath = {path:?}\nopen_world_path = {path:?}\n");
    let gateway = Gateway::configured(&format!("{audit}{}", config("hold = \"0s\""))).await;
    for (args, expected) in [
        (&["grant", TOOL][..], "conditions over its arguments"),
        (&["grant", TOOL, "--when", "{}"], "at least one condition"),
        (&["grant", TOOL, "--when", "{"], "invalid value"),
        (&["grant", TOOL, "--uses", "0"], "`unlimited`"),
        (
            &["grant", TOOL, "--when", WHEN, "--until", "31d"],
            "up to 30 days",
        ),
        (
            &["grant", TOOL, "--when", WHEN, "--for", "operator"],
            "another operator",
        ),
        (&["grant", "orders.nothing"], "no tool"),
    ] {
        let (done, printed) = approvals(&gateway, args).await;
        assert!(!done && printed.contains(expected), "{printed}");
        assert!(!printed.contains("not_sent"), "{printed}");
    }
    let grant = [
        "grant",
        TOOL,
        "--when",
        WHEN,
        "--uses",
        "2",
        "--for",
        "anonymous",
    ];
    let (done, printed) = approvals(&gateway, &grant).await;
    assert!(done, "{printed}");
    let call = [
        &["explain", DELETE, r#"{"order_id": 1}"#],
        &gateway.here()[..],
    ]
    .concat();
    let explained = |done: std::process::Output| text(&done.stdout).contains("2 uses left");
    assert!(!explained(ends(&call).await), "it is the operator's own");
    let call = [&call[..], &["--as", "anonymous"]].concat();
    assert!(explained(ends(&call).await));

    for order_id in [1, 2] {
        let answer = gateway.mcp(DELETE, order(order_id)).await;
        assert_ne!(result(&answer)["isError"], true, "{answer}");
    }
    for order_id in [3, 4] {
        let answer = gateway.mcp(DELETE, order(order_id)).await;
        assert_eq!(result(&answer)["resultType"], "input_required", "{answer}");
    }
    assert_eq!(deleted(&gateway).await, 2);
    let (_, listed) = approvals(&gateway, &["grants", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["used"], &listed[0]["by"]),
        (&json!("used"), &json!(2), &json!("operator"))
    );
    let (_, all) = approvals(&gateway, &["list", "--all", "--json"]).await;
    let all: Value = serde_json::from_str(&all).unwrap();
    let by_it = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["grant"] == listed[0]["id"]);
    assert_eq!(by_it.count(), 2, "{all}");

    let (_, table) = approvals(&gateway, &["grants"]).await;
    let short = &id(&listed[0])[..8];
    let row = format!("{short}  used   orders  delete_order  {{\"order_id\":");
    assert!(table.contains(&row), "{table}");
    let (done, printed) = approvals(&gateway, &["revoke", short]).await;
    assert!(done && printed.contains("is revoked"), "{printed}");
    let (done, printed) = approvals(&gateway, &["revoke", short]).await;
    assert!(!done && printed.contains("no grant"), "{printed}");
    let secret = r#"{"order_id": 4, "api_key": "hunter2"}"#;
    let grant = ["grant", TOOL, "--when", secret, "--uses", "unlimited"];
    assert!(approvals(&gateway, &grant).await.0);
    gateway.stopped().await;

    let of = |members: [&str; 6]| -> Vec<Value> {
        let audited = records(&path, "approval").into_iter();
        let audited = audited.filter(|record| record.get("grant").is_some());
        audited
            .map(|record| members.map(|member| record[member].clone()).into())
            .collect()
    };
    let when: Value = serde_json::from_str(WHEN).unwrap();
    let any = json!({"order_id": 4, "api_key": "[redacted]"});
    assert_eq!(
        of(["outcome", "by", "principal", "uses", "used", "when"]),
        [
            json!(["granted", "operator", "anonymous", 2, 0, when]),
            json!(["revoked", "operator", "anonymous", 2, 2, when]),
            json!(["granted", "operator", null, "unlimited", 0, any]),
        ]
    );
    let (id, ends_at) = (&listed[0]["id"], &listed[0]["expires"]);
    for named in &of(["grant", "expires", "set", "tool", "kind", "request"])[..2] {
        let expected = json!([id, ends_at, "orders", "delete_order", "approval", null]);
        assert_eq!(*named, expected);
    }
    // the calls that no one approved were not made
    let calls = records(&path, "call");
    let refused: Vec<_> = calls
        .iter()
        .filter(|call| call["outcome"] == "refused")
        .map(|call| (&call["tool"], &call["decision"]["by"]))
        .collect();
    let expected = (&json!("delete_order"), &json!("approval"));
    assert_eq!(refused, [expected, expected]);
    let path = path.to_str().unwrap();
    let shown = ends(&["audit", "show", path, "--tool", "delete_order"]).await;
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("orders  delete_order  revoked (operator)"),
        "{shown}"
    );
    let verified = ends(&["audit", "verify", path]).await;
    let verified = text(&verified.stdout);
    assert!(verified.contains(": whole: "), "{verified}");
    assert!(
        verified.contains("2 requests for approval of tools"),
        "{verified}"
    );
}

#[tokio::test]
async fn several_requests_are_decided_at_once_and_then_a_grant_is_suggested() {
    let gateway = Gateway::configured(&config("hold = \"0s\"")).await;
    let ask = async |order_id: u32| {
        let arguments = json!({"order_id": order_id, "env": "it's", "api_key": "hunter2"});
        gateway.mcp(DELETE, arguments).await
    };
    for order_id in 1..=6 {
        ask(order_id).await;
    }
    let open = pending(&gateway, 6).await;
    let ids: Vec<&str> = open.iter().map(id).collect();
    let (done, printed) = approvals(&gateway, &["approve", ids[0], "0000", ids[1]]).await;
    assert!(
        !done && printed.contains("no request \"0000\""),
        "{printed}"
    );
    assert_eq!(printed.matches("approved  orders").count(), 2, "{printed}");
    let (done, printed) = approvals(&gateway, &[&["approve"], &ids[2..5]].concat()).await;
    assert!(done, "{printed}");
    let (_, digest) = approvals(&gateway, &["digest"]).await;
    assert!(digest.contains("no tool"), "none has run: {digest}");
    for order_id in 1..=5 {
        let answer = ask(order_id).await;
        assert_ne!(result(&answer)["isError"], true, "{answer}");
    }
    let (_, digest) = approvals(&gateway, &["digest"]).await;
    let command = "callward approvals grant orders.delete_order --when '{\"env\":\"it'\\''s\"}' \
                   --for anonymous --uses 5 --until 1day";
    assert!(digest.contains(command), "{digest}");

    let (done, printed) = approvals(&gateway, &["deny", ids[5], ids[4]]).await;
    assert!(!done && printed.contains("denied  orders"), "{printed}");
    let (_, digest) = approvals(&gateway, &["digest"]).await;
    assert!(digest.contains("no tool"), "{digest}");
    for body in ["", "{}", r#"{"ids": []}"#, r#"{"ids": [1]}"#] {
        let answer = gateway
            .post("/api/approvals/deny", "application/json", body)
            .await;
        assert_eq!(answer.0, 400, "{answer:?}");
    }
}
