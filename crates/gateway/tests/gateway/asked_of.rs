//! Who is asked to approve a call: the client, an operator, or one with a certain role.

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, ErrorData};
use serde_json::{Value, json};

use crate::approvals::{DELETE, approvals, deleted, id, order, pending};
use crate::support::{
    Gateway, answer_of, answered, ends, file, http, result, said, sample, serve, text, within,
};

/// The shop, of which all clients share one process.
fn shop() -> String {
    format!("{}instances = \"shared\"\n", sample("orders"))
}

/// Approves orders 1 and 3, and no other.
pub(crate) struct Careful;

impl ClientHandler for Careful {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("careful", "1"))
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(asked).unwrap();
        let message = asked["message"].as_str().unwrap();
        assert!(
            message.contains("delete_order of orders (destructive)"),
            "{message}"
        );
        let approve = [1, 3]
            .iter()
            .any(|id| message.contains(&order(*id).to_string()));
        let said = ElicitResult::new(ElicitationAction::Accept);
        Ok(said.with_content(json!({"approve": approve})))
    }
}

/// Connects such a client to a gateway.
pub(crate) async fn connected(
    gateway: &Gateway,
    client: Careful,
    mode: ClientLifecycleMode,
) -> RunningService<RoleClient, Careful> {
    let config = StreamableHttpClientTransportConfig::with_uri(gateway.url.as_str());
    let transport = StreamableHttpClientTransport::with_client(http(), config);
    let client = within("connecting", client.serve_with_lifecycle(transport, mode)).await;
    client.unwrap()
}

#[tokio::test]
async fn by_default_a_client_that_can_is_asked_in_both_eras() {
    for approvals in ["", "[approvals]\nby = \"client\"\n"] {
        let gateway = Gateway::configured(&format!("{approvals}{}", shop())).await;
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        for (runs, mode) in [
            (1, ClientLifecycleMode::Initialize),
            (2, ClientLifecycleMode::Discover { preferred_versions }),
        ] {
            let client = connected(&gateway, Careful, mode).await;
            for order_id in [runs * 2 - 1, runs * 2] {
                let arguments = order(order_id).as_object().cloned().unwrap();
                let called = CallToolRequestParams::new(DELETE).with_arguments(arguments);
                let answer = within("the answer", client.call_tool(called))
                    .await
                    .unwrap();
                let is_denied = answer.is_error == Some(true);
                assert_eq!(is_denied, order_id % 2 == 0, "{answer:?}");
            }
            assert_eq!(deleted(&gateway).await, u64::from(runs));
            client.cancel().await.unwrap();
        }
    }
}

#[tokio::test]
async fn without_a_way_to_ask_the_plan_is_advice_and_says_so() {
    let gateway = Gateway::configured(&shop()).await;
    let answer = gateway.mcp(DELETE, order(1)).await;
    assert_ne!(result(&answer)["isError"], true, "{answer}");
    assert_eq!(deleted(&gateway).await, 1);
    let explain = ends(&[&["explain", DELETE], &gateway.here()[..]].concat()).await;
    let explain = text(&explain.stdout);
    assert!(
        explain.contains("a client that declares elicitation asks its user"),
        "{explain}"
    );
    assert!(
        explain.contains("the calls of other clients are sent"),
        "{explain}"
    );
}

#[tokio::test]
async fn a_modern_client_comes_again_until_an_operator_decides() {
    let config = format!("[approvals]\nhold = \"0s\"\n{}", shop());
    let gateway = Gateway::configured(&config).await;
    let call = async |order_id: u32, state: Option<&Value>| {
        let mut params = json!({"name": DELETE, "arguments": {"order_id": order_id}});
        if let Some(state) = state {
            params["requestState"] = state.clone();
        }
        let request = gateway.modern("tools/call", params);
        answer_of(&answered(request.header("mcp-name", DELETE)).await.1)
    };
    let waits = call(1, None).await;
    assert_eq!(waits["result"]["resultType"], "input_required", "{waits}");
    assert_eq!(waits["result"]["inputRequests"], Value::Null, "{waits}");
    let again = call(1, Some(&waits["result"]["requestState"])).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let state = &again["result"]["requestState"];
    let request = pending(&gateway, 1).await.remove(0);
    // before an SDK gives up, there is an answer that says what it waits for
    let (mut last, mut rounds) = (again.clone(), 2);
    while last["result"]["resultType"] == "input_required" {
        last = call(1, Some(&last["result"]["requestState"])).await;
        rounds += 1;
    }
    assert!(said(&last).contains("waits for a person"), "{last}");
    assert_eq!(rounds, 9);
    // a state is of its own call
    let other = call(2, Some(state)).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    assert!(approvals(&gateway, &["approve", id(&request)]).await.0);
    assert_eq!(deleted(&gateway).await, 0);
    let done = call(1, Some(state)).await;
    assert_ne!(done["result"]["isError"], true, "{done}");
    assert_eq!(deleted(&gateway).await, 1);
    // and used again, it asks for an approval of its own
    let waits = call(1, Some(state)).await;
    assert_eq!(waits["result"]["resultType"], "input_required", "{waits}");
    assert_eq!(deleted(&gateway).await, 1);
}

#[tokio::test]
async fn the_signal_to_stop_ends_the_wait_of_a_call() {
    let gateway = Gateway::configured(&format!("[approvals]\n{}", shop())).await;
    let waits = gateway.begin(DELETE, &order(1));
    pending(&gateway, 1).await;
    gateway.signal("-TERM").await;
    let answer = answer_of(&within("the answer", waits).await.unwrap().1);
    assert!(said(&answer).contains("waits for a person"), "{answer}");
    let (_, printed) = gateway.ended().await;
    assert!(printed.contains("no call was cut off"), "{printed}");
}

#[tokio::test]
async fn rules_ask_about_arguments_and_name_who_approves() {
    let state = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let dir = state.path().to_str().unwrap();
    let mut keys = Vec::new();
    for args in [
        &["ada"][..],
        &["ops", "--role", "operator"],
        &["sec", "--role", "operator", "--role", "security"],
    ] {
        let create = [&["keys", "create"], args, &["--state-dir", dir]].concat();
        keys.push(text(&ends(&create).await.stdout).trim().to_owned());
    }
    // clients are identified, so that calls are approved without `[approvals]`
    let rules = r#"
        [[authorize]]
        name = "greetings"
        tool = ["orders.add_note"]
        when = { text = "hi" }
        then = "allow"
        [[authorize]]
        name = "notes"
        tool = ["orders.add_note"]
        then = "ask"
        approvers = ["security"]
        [auth]
        keys = true
    "#;
    let (command, file) = serve(&format!("{rules}{}", shop()));
    let gateway = Gateway::started(command, Some(file), Some(state.clone())).await;
    let call = |tool: &str, arguments: Value| {
        let request = gateway.mcp_request(tool, &arguments, &json!({}));
        let request = request.bearer_auth(&keys[0]);
        tokio::spawn(async move { answered(request).await })
    };
    let note = |text: &str| json!({"order_id": 2, "text": text});
    let here = gateway.here();
    for (tool, arguments, rule, said) in [
        (
            "orders__add_note",
            note("x"),
            json!({"rule": "notes", "by": "operator", "approvers": ["security"]}),
            "Rule `notes` asks about the call: an operator with the role `security` approves it.",
        ),
        (
            "orders__add_note",
            note("hi"),
            Value::Null,
            "rule `greetings`",
        ),
        (DELETE, order(1), Value::Null, "waits for an operator"),
    ] {
        let explain = ["explain", tool, &arguments.to_string(), "--json"];
        let shown = ends(&[&explain[..], &here].concat()).await;
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(shown["ask"], rule, "{shown}");
        assert!(shown["text"].as_str().unwrap().contains(said), "{shown}");
    }
    for (args, expected) in [
        (&["tools"][..], ["no  ", "rule", "yes "]),
        (&["tools", "--by-safety"], ["no", "rule", "yes"]),
        (
            &["tools", "--json"],
            [r#""rule_may_ask":false"#, r#""rule_may_ask":true"#, ""],
        ),
    ] {
        let shown = ends(&[args, &here].concat()).await;
        let names = ["orders__get_order", "orders__add_note", DELETE];
        for (name, expected) in names.into_iter().zip(expected) {
            let mut rows = text(&shown.stdout).lines();
            let row = rows.find(|row| row.contains(name)).unwrap();
            assert!(row.contains(expected), "{expected}: {row}");
        }
    }
    let done = call("orders__add_note", note("hi")).await.unwrap();
    assert!(!said(&answer_of(&done.1)).contains("waits"), "{done:?}");
    let waits = call("orders__add_note", note("x"));
    let deletes = call(DELETE, order(1));
    let open = pending(&gateway, 2).await;
    let of = |tool: &str| open.iter().find(|one| one["tool"] == tool).unwrap();
    let asked = of("add_note");
    assert_eq!(asked["roles"], json!(["security"]));
    assert!(
        asked["reason"].as_str().unwrap().contains("`notes`"),
        "{asked}"
    );
    let decide = async |key: &str, request: &Value| {
        let url = gateway.at(&format!("/api/approvals/{}/approve", id(request)));
        let decision = gateway
            .http
            .post(url)
            .header("content-type", "application/json");
        answered(decision.bearer_auth(key)).await
    };
    let (status, why) = decide(&keys[1], asked).await;
    assert!(status == 403 && why.contains("security"), "{status} {why}");
    assert_eq!(decide(&keys[2], asked).await.0, 200);
    let done = answer_of(&waits.await.unwrap().1);
    assert_ne!(result(&done)["isError"], true, "{done}");
    // the plan of a destructive tool asks any operator
    assert_eq!(decide(&keys[1], of("delete_order")).await.0, 200);
    let done = answer_of(&deletes.await.unwrap().1);
    assert_ne!(result(&done)["isError"], true, "{done}");
    assert_eq!(deleted(&gateway).await, 1);
}

#[tokio::test]
async fn a_config_in_which_no_one_could_answer_is_refused() {
    let rule = |more: &str| format!("[[authorize]]\ntool = [\"*.*\"]\nthen = \"ask\"\n{more}\n");
    let by_client = rule("by = \"client\"");
    for (config, check, run) in [
        (rule(""), Some("authorize.1.then"), None),
        (
            "authorize_default = \"ask\"\n".to_owned(),
            Some("authorize_default"),
            None,
        ),
        (by_client.clone(), None, None),
        (
            rule("by = \"client\"\napprovers = [\"x\"]"),
            Some("authorize.1.approvers"),
            None,
        ),
        (
            format!("{}[approvals]\n", rule("")),
            None,
            Some("no operator can decide"),
        ),
        (
            format!(
                "{}[approvals]\nby = \"client\"\n",
                rule("by = \"operator\"")
            ),
            None,
            Some("no operator can decide"),
        ),
    ] {
        let file =
            file(format!("{config}{}", shop()).replace("CALLWARD", crate::support::CALLWARD));
        let path = file.path().to_str().unwrap();
        let done = ends(&["serve", "--check", "--config", path]).await;
        let printed = text(&done.stderr);
        assert_eq!(
            done.status.success(),
            check.is_none(),
            "{config}: {printed}"
        );
        assert!(
            printed.contains(check.unwrap_or_default()),
            "{config}: {printed}"
        );
        if let Some(expected) = run {
            let done = ends(&["run", "--config", path]).await;
            assert_eq!(done.status.code(), Some(2), "{done:?}");
            assert!(text(&done.stderr).contains(expected), "{done:?}");
        }
    }
}

#[tokio::test]
async fn a_check_names_each_fault_of_approvals_and_warns_of_missing_roles() {
    let check = async |config: String| {
        let file = file((config + &shop()).replace("CALLWARD", crate::support::CALLWARD));
        let path = file.path().to_str().unwrap();
        let done = ends(&["serve", "--check", "--config", path]).await;
        (done.status.success(), text(&done.stderr).to_owned())
    };
    let faults = "[approvals]\nexpires = \"0s\"\ncool_off = \"2days\"\npending = 0\n\
                  [approvals.webhook]\nurl = \"ftp://x\"\nsecret = \"short\"\n";
    let (passes, printed) = check(faults.to_owned()).await;
    assert!(!passes);
    for (place, fault) in [
        (":2:11: `approvals.expires`", "is not between"),
        (":3:12: `approvals.cool_off`", "is above"),
        (":4:11: `approvals.pending`", "is 0"),
        (":5:12: `approvals.webhook`", "`url` must be"),
        (":5:12: `approvals.webhook`", "`secret` must have"),
    ] {
        let fault = format!("{place}: {fault}");
        assert_eq!(printed.matches(&fault).count(), 1, "{fault} in {printed}");
    }
    let rule = "[[authorize]]\nthen = \"ask\"\napprovers = [\"lead\"]\n";
    for (roles, warns) in [("[approvals]\n", true), ("[auth]\nkeys = true\n", false)] {
        let (passes, printed) = check(format!("{rule}{roles}")).await;
        let warned = printed.contains("`authorize.1.approvers`: no operator has a role");
        assert_eq!((passes, warned), (true, warns), "{printed}");
    }
}
