//! `[[authorize]]`: who sees and calls which tool.

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};

use crate::audit::records;
use crate::support::{Gateway, answer_of, answered, ends, sample, text};

#[tokio::test]
async fn a_denied_tool_is_not_listed_and_its_calls_leave_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let config = format!(
        "[[authorize]]\nname = \"no orders\"\ntool = [\"orders.get_order\"]\n\
         principal = [\"anon*\"]\nthen = \"deny\"\n[audit]\npath = {path:?}\n{}",
        sample("orders")
    );
    let gateway = Gateway::fixed(&config).await;
    let plans = json!({"_meta": {"io.callward/plans": true}});
    let (_, body) = answered(gateway.modern("tools/list", plans)).await;
    let answer = answer_of(&body);
    let tools = answer["result"]["tools"].as_array().unwrap();
    let is_order = |tool: &&Value| tool["name"] == "orders__get_order";
    assert!(tools.len() > 3 && tools.iter().find(is_order).is_none());
    let plans = answer["result"]["_meta"]["io.callward/plans"].as_object();
    assert_eq!(plans.unwrap().len(), tools.len());
    let asks = json!({"io.callward/trail": true});
    let noted = json!({"order_id": 1, "text": "x"});
    let allowed = gateway.mcp_with("orders__add_note", &noted, &asks).await;
    let trail = &allowed["result"]["_meta"]["io.callward/trail"];
    assert!(
        trail.is_object() && !trail.to_string().contains("authorize"),
        "{allowed}"
    );
    let denied = gateway.order(1).await;
    let hidden = json!({"order_id": 1});
    let hidden = gateway.mcp_with("orders__get_order", &hidden, &asks).await;
    assert_eq!(hidden["error"], denied["error"]);
    let unknown = gateway.mcp("orders__get_ordex", json!({})).await;
    let same = unknown["error"].to_string().replace("ordex", "order");
    assert_eq!(denied["error"].to_string(), same);
    assert_eq!(denied["error"]["code"], -32602);
    let (_, metrics) = gateway.get("/metrics").await;
    assert!(metrics.contains("unknown_tool") && !metrics.contains("get_orde"));
    let explain = ["explain", "orders__get_order", "{}"];
    let explain = [&explain[..], &gateway.here(), &["--as"]].concat();
    for (who, said) in [
        ("anonymous", "rule `no orders`"),
        ("key#1", "rule `default`"),
    ] {
        let shown = ends(&[&explain[..], &[who]].concat()).await;
        assert!(
            text(&shown.stdout).contains(said),
            "{}",
            text(&shown.stdout)
        );
    }
    // an operator learns which rule hides it, and as whom the command calls
    let call = [&["call", "orders__get_order"], &gateway.here()[..]].concat();
    let said = ends(&call).await;
    let said = text(&said.stderr);
    assert!(said.contains("rule `no orders` hides it"), "{said}");
    assert!(
        said.contains("`anonymous` with the role `operator`"),
        "{said}"
    );
    gateway.stopped().await;
    let refused = records(&path, "refused");
    let rule = |record: &Value| record["rule"].as_str().map(str::to_owned);
    let rules: Vec<_> = refused.iter().map(rule).collect();
    let named = Some("no orders".to_owned());
    assert_eq!(rules, [named.clone(), named.clone(), None, named]);
    assert_eq!(refused[0]["decision"]["by"], "authorization");
    assert_eq!(refused[0]["policy"].as_str().unwrap().len(), 12);
}

#[tokio::test]
async fn a_webhook_decides_about_calls_that_the_rules_allow() {
    let decide = async |body: String| {
        let question: Value = serde_json::from_str(&body).unwrap();
        let allow = question["arguments"]["order_id"] == 1 && question["principal"] == "anonymous";
        json!({"allow": allow, "reason": "only the first order"}).to_string()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = Router::new().route("/", post(decide)).into_make_service();
    let service = tokio::spawn(async move { axum::serve(listener, service).await });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let config = format!(
        "[authorize_webhook]\nurl = {url:?}\nsecret = \"a secret of at least 24 bytes\"\n\
         [audit]\npath = {path:?}\n{}",
        sample("orders")
    );
    let gateway = Gateway::fixed(&config).await;
    assert!(gateway.order(1).await["result"].is_object());
    let refused = gateway.order(2).await["error"].to_string();
    assert!(refused.contains("only the first order"), "{refused}");
    service.abort();
    let _ = service.await;
    // the answer is kept; without one, calls are refused
    assert!(gateway.order(1).await["result"].is_object());
    let refused = gateway.order(3).await["error"].to_string();
    assert!(refused.contains("gives no answer"), "{refused}");
    gateway.stopped().await;
    let refused = records(&path, "refused");
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|record| record["rule"] == "webhook"));
}
