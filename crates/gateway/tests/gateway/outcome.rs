//! What a caller gets of a call whose answer never came: over a real socket that breaks.

use callward::ToolDefinition;
use callward_chaos::{Break, Chaos, Fault, Ledger};
use callward_testkit::hostile::Era;
use callward_testkit::hostile::http::HttpServer;
use serde_json::{Value, json};

use crate::scripted::tool;
use crate::support::{Gateway, ends, file, result, sample, text};

/// A shop that runs every call, and breaks the connection before it answers.
async fn shop(ledger: &Ledger) -> HttpServer {
    let tools = [
        ("create_order", false),
        ("get_order", true),
        ("read_prices", true),
    ];
    let tools = tools.map(|(name, reads)| {
        let mut listed = tool(name, reads);
        listed["annotations"]["destructiveHint"] = false.into();
        ToolDefinition::from_json(listed.to_string()).unwrap()
    });
    let lost = Fault::LoseReply {
        sent: 0,
        broken: Break::Reset,
    };
    let chaos = Chaos::script(vec![Some(lost)]);
    let started = HttpServer::start(Era::Modern, &tools, chaos, ledger.clone());
    started.await.unwrap()
}

fn config(shop: &HttpServer) -> String {
    format!("[servers.shop]\nurl = {:?}\n", shop.url())
}

/// A gateway before another one.
async fn before(inner: &Gateway, more: &str) -> Gateway {
    let url = inner.public("/mcp");
    Gateway::configured(&format!("[servers.far]\nurl = {url:?}\n{more}")).await
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_says_what_to_check_it_with() {
    let ledger = Ledger::new();
    let shop = shop(&ledger).await;
    let config = file(config(&shop));
    let here = ["--config", config.path().to_str().unwrap()];
    let run = async |args: &[&str]| ends(&[args, &here].concat()).await;
    let failing = async |tool: &str, call: &str, said: &[&str]| {
        let done = run(&["call", tool, call]).await;
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        for part in said {
            assert!(text(&done.stderr).contains(part), "{part} in {done:?}");
        }
        assert_eq!(text(&done.stdout), "");
        text(&done.stderr).to_owned()
    };
    let parts = [
        "check with `shop__get_order` what it did before calling it again",
        "outcome_unknown, delivery unknown",
        "it may have run  sent ",
        "11 bytes of arguments  check with shop__get_order",
        "attempts 1",
    ];
    failing("shop__create_order", r#"{"call": 1}"#, &parts).await;

    let done = run(&["call", "shop__create_order", r#"{"call": 2}"#, "--json"]).await;
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let said: Value = serde_json::from_str(text(&done.stdout)).unwrap();
    assert_eq!(said["error"]["kind"], "outcome_unknown", "{said}");
    let outcome = &said["error"]["outcome"];
    let found = ["verifyWith", "tool", "server", "failure"].map(|key| &outcome[key]);
    let expected = ["shop__get_order", "create_order", "shop", "connection_lost"];
    assert_eq!(found, expected, "{said}");
    let done = run(&["explain", "shop__create_order", "--json"]).await;
    let said: Value = serde_json::from_str(text(&done.stdout)).unwrap();
    assert_eq!(said["verify_with"], "shop__get_order", "{said}");
    for call in [1, 2] {
        assert_eq!(ledger.of(call).executions, 1, "sent once");
    }

    // of a read that keeps failing, all attempts are listed
    let parts = [
        "attempt 1  server shop  after 0 µs  connection_lost, delivery unknown: ",
        "attempt 3  server shop  after ",
        "attempts 3",
    ];
    let said = failing("shop__get_order", r#"{"call": 3}"#, &parts).await;
    assert!(!said.contains("check with"), "it only reads: {said}");
}

#[tokio::test]
async fn a_tool_to_check_with_is_named_to_those_only_who_see_it() {
    let shop = shop(&Ledger::new()).await;
    let deny = "[[authorize]]\ntool = [\"shop.get_order\"]\nthen = \"deny\"\n";
    let gateway = Gateway::configured(&format!("{deny}{}", config(&shop))).await;
    let answer = gateway.mcp("shop__create_order", json!({"call": 1})).await;
    let error = &answer["error"];
    assert_eq!(error["data"]["kind"], "outcome_unknown", "{answer}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("check what it did")
    );
    assert_eq!(error["data"]["outcome"]["verifyWith"], Value::Null);
    assert!(!answer.to_string().contains("get_order"), "{answer}");
}

#[tokio::test]
async fn refusals_of_another_gateway_open_no_breaker() {
    let hint = "prefix = false\n[servers.orders.tools.add_note]\nrateLimitHint = 1\n";
    let inner = Gateway::configured(&(sample("orders") + hint)).await;
    let outer = before(&inner, "prefix = false\n").await;
    let note = || outer.mcp("add_note", json!({"order_id": 1, "text": "x"}));
    result(&note().await);
    for _ in 0..5 {
        let answer = note().await;
        let data = &answer["error"]["data"];
        assert_eq!(data["kind"], "rate_limited", "{answer}");
        assert!(data["retryAfterMs"].is_u64(), "{answer}");
    }
}

#[tokio::test]
async fn a_client_of_two_gateways_is_told_of_no_tool_that_it_does_not_have() {
    let ledger = Ledger::new();
    let shop = shop(&ledger).await;
    // the outer one takes it for a read, as the server says, and so has nothing to verify it with
    let inner = format!(
        "[breaker]\nfailures = 100\n{}[servers.shop.tools.get_order]\nreadOnlyHint = false\n\
         idempotentHint = false\nverify_with = \"read_prices\"\n",
        config(&shop)
    );
    let inner = Gateway::configured(&inner).await;
    let reported = inner.mcp("shop__get_order", json!({"call": 1})).await;
    let verifier = &reported["error"]["data"]["outcome"]["verifyWith"];
    assert_eq!(verifier, "shop__read_prices", "{reported}");
    let outer = before(&inner, "").await;
    for (tool, call, verifier) in [
        ("far__shop__create_order", 2, json!("far__shop__get_order")),
        ("far__shop__get_order", 3, Value::Null),
    ] {
        let answer = outer.mcp(tool, json!({ "call": call })).await;
        let data = &answer["error"]["data"];
        assert_eq!(data["delivery"], "unknown", "{answer}");
        assert_eq!(data["server"], "far", "{answer}");
        assert_eq!(data["outcome"]["verifyWith"], verifier, "{answer}");
        let said = answer.to_string();
        for named in said.split("check with `").skip(1) {
            assert!(named.starts_with("far__shop__get_order`"), "{answer}");
        }
        let verifiers = said.matches("\"verifyWith\"").count();
        assert_eq!(verifiers, usize::from(verifier.is_string()), "{answer}");
    }
    assert_eq!(ledger.of(2).executions, 1, "a write is sent once");
    let answer = outer
        .mcp("far__shop__read_prices", json!({"call": 4}))
        .await;
    assert_eq!(answer["error"]["data"]["kind"], "server_fault", "{answer}");
    assert_eq!(ledger.of(4).executions, 3, "one gateway retries: {answer}");
}
