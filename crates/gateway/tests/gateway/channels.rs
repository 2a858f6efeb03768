//! Where operators learn of requests for approval, and answer: a stream, and a signed webhook.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use ring::hmac;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::approvals::{DELETE, approvals, config, deleted, id, order, pending};
use crate::events::Follower;
use crate::support::{Gateway, SERVE, answer_of, answered, callward, result, until};

const SECRET: &str = "a secret of at least 24 bytes";

/// What the service of an operator was sent, in its order.
#[derive(Clone, Default)]
struct Service(Arc<Mutex<Vec<(HeaderMap, String)>>>);

impl Service {
    /// Starts one that fails this often, and then accepts; returns its URL.
    async fn failing(&self, times: usize) -> String {
        let received = self.0.clone();
        let receive = async move |headers: HeaderMap, body: String| {
            let mut received = received.lock();
            received.push((headers, body));
            match received.len() > times {
                true => StatusCode::NO_CONTENT,
                false => StatusCode::INTERNAL_SERVER_ERROR,
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = Router::new().route("/", post(receive)).into_make_service();
        tokio::spawn(async move { axum::serve(listener, service).await });
        url
    }

    /// Waits until it got this many messages.
    async fn received(&self, count: usize, gateway: &Gateway) -> Vec<(HeaderMap, String)> {
        until("the messages", || async {
            gateway.get("/readyz").await;
            let received = self.0.lock();
            (received.len() >= count).then(|| received.clone())
        })
        .await
    }
}

fn signature(secret: &str, id: &str, timestamp: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = format!("{id}.{timestamp}.{body}");
    format!(
        "v1,{}",
        STANDARD.encode(hmac::sign(&key, signed.as_bytes()))
    )
}

/// Sends an answer that is signed this many seconds ago; returns the status and the body.
async fn answers(
    gateway: &Gateway,
    request: &str,
    body: &Value,
    secret: &str,
    age: u64,
) -> (u16, String) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a message has the time of the day"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (timestamp, body) = ((now.as_secs() - age).to_string(), body.to_string());
    let url = gateway.at(&format!("/api/approvals/{request}/answer"));
    let request = gateway.http.post(url);
    let request = request
        .header("content-type", "application/json")
        .header("webhook-id", "answer-1")
        .header(
            "webhook-signature",
            signature(secret, "answer-1", &timestamp, &body),
        )
        .header("webhook-timestamp", timestamp);
    answered(request.body(body)).await
}

/// Waits until these outcomes of deliveries are counted.
async fn counts(gateway: &Gateway, expected: &[(&str, &str)]) {
    until("the counts", || async {
        let (_, page) = gateway.get("/metrics").await;
        let is_there = |(outcome, count): &(&str, &str)| {
            let series = "callward_approval_deliveries_total{callward_outcome=";
            page.contains(&format!("{series}{outcome:?}}} {count}\n"))
        };
        expected.iter().all(is_there).then_some(())
    })
    .await;
}

fn with_webhook(url: &str) -> String {
    let webhook = format!("[approvals.webhook]\nurl = {url:?}\nsecret = {SECRET:?}");
    config(&webhook)
}

#[tokio::test]
async fn a_webhook_gets_each_state_and_its_signed_answer_decides() {
    let service = Service::default();
    let url = service.failing(2).await;
    let gateway = Gateway::configured(&with_webhook(&url)).await;
    let mut watched = Follower::running(&gateway, &["approvals", "watch"], &[]).await;
    let mut raw = Follower::running(&gateway, &["approvals", "watch"], &["--json"]).await;
    let waits = gateway.begin(DELETE, &json!({"order_id": 1, "api_key": "hunter2"}));

    let received = service.received(3, &gateway).await;
    let (headers, body) = &received[0];
    let header = |name: &str| headers[name].to_str().unwrap();
    for (again, same) in &received {
        assert_eq!((&again["webhook-id"], same), (&headers["webhook-id"], body));
    }
    let signed = signature(
        SECRET,
        header("webhook-id"),
        header("webhook-timestamp"),
        body,
    );
    assert_eq!(header("webhook-signature"), signed);
    assert!(!body.contains("hunter2"), "{body}");
    let message: Value = serde_json::from_str(body).unwrap();
    let open = pending(&gateway, 1).await.remove(0);
    for name in [
        "id",
        "state",
        "principal",
        "set",
        "tool",
        "effect",
        "reason",
        "expires",
    ] {
        assert!(message[name].is_string(), "{name}: {message}");
        assert_eq!(message[name], open[name]);
    }
    assert_eq!(
        message["arguments"],
        r#"{"api_key":"[redacted]","order_id":1}"#
    );

    let request = id(&open);
    let good = json!({"id": request, "approves": true, "by": "ada", "roles": ["ops"]});
    let with = |name: &str, value: Value| {
        let mut other = good.clone();
        other[name] = value;
        other
    };
    for (body, secret, age, expected) in [
        (&good, "another secret of 24 bytes", 0, 401),
        (&good, SECRET, 301, 401),
        // an answer counts for its own request only
        (&with("id", json!("0".repeat(32))), SECRET, 0, 401),
        (&with("more", json!(1)), SECRET, 0, 400),
        (&with("by", json!("")), SECRET, 0, 400),
        (&with("by", json!(" anonymous")), SECRET, 0, 400),
        // who asks does not decide
        (&with("by", json!("anonymous")), SECRET, 0, 403),
        (&with("note", json!("x".repeat(20_000))), SECRET, 0, 413),
    ] {
        let (status, said) = answers(&gateway, request, body, secret, age).await;
        assert_eq!(status, expected, "{body}: {said}");
    }
    let part = &request[..8];
    let (status, _) = answers(&gateway, part, &with("id", json!(part)), SECRET, 0).await;
    assert_eq!((status, deleted(&gateway).await), (404, 0));

    let (status, decided) = answers(&gateway, request, &good, SECRET, 0).await;
    assert_eq!(status, 200, "{decided}");
    let decided: Value = serde_json::from_str(&decided).unwrap();
    let decision = &decided["decision"];
    assert_eq!(
        [&decision["by"], &decision["channel"]],
        ["webhook#ada", "webhook"]
    );
    let answer = answer_of(&waits.await.unwrap().1);
    assert_ne!(result(&answer)["isError"], true, "{answer}");
    assert_eq!(deleted(&gateway).await, 1);
    assert_eq!(answers(&gateway, request, &good, SECRET, 0).await.0, 409);

    let received = service.received(5, &gateway).await;
    let states = received.iter().map(|(_, body)| {
        let message: Value = serde_json::from_str(body).unwrap();
        message["state"].as_str().unwrap().to_owned()
    });
    let states: Vec<_> = states.collect();
    assert_eq!(
        states,
        ["pending", "pending", "pending", "approved", "succeeded"]
    );
    counts(
        &gateway,
        &[("failed", "2"), ("delivered", "3"), ("lost", "0")],
    )
    .await;

    let asked = format!("pending    {part}  orders.delete_order of anonymous, destructive: ");
    watched.line(&asked, |line| line.starts_with(&asked)).await;
    let approved = format!("approved   {part}  orders.delete_order of anonymous");
    let line = watched
        .line(&approved, |line| line.starts_with(&approved))
        .await;
    assert!(line.ends_with("decided by webhook#ada"), "{line}");
    let first: Value = serde_json::from_str(&raw.line("an event", |_| true).await).unwrap();
    assert_eq!(
        (first["id"].as_str(), &first["state"]),
        (Some(request), &json!("pending"))
    );
    assert!(first.get("arguments").is_none(), "{first}");
    gateway.stopped().await;
    for mut follower in [watched, raw] {
        follower.notes("the gateway stopped").await;
        assert!(follower.ends().await);
    }
}

#[tokio::test]
async fn a_webhook_that_is_down_delays_no_decision() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut gateway = Gateway::configured(&with_webhook(&url)).await;
    let waits = gateway.begin(DELETE, &order(1));
    let open = pending(&gateway, 1).await.remove(0);
    gateway.says("the webhook of approvals fails").await;
    let shown = until("the failure", || async {
        let (_, shown) = approvals(&gateway, &["show", id(&open)]).await;
        shown.contains("delivery   failing: ").then_some(shown)
    })
    .await;
    assert!(shown.contains("state      pending"), "{shown}");
    assert!(approvals(&gateway, &["approve", id(&open)]).await.0);
    let answer = answer_of(&waits.await.unwrap().1);
    assert_ne!(result(&answer)["isError"], true, "{answer}");
    assert_eq!(deleted(&gateway).await, 1);
    // newer states take the place of those before, and an outage is logged once
    counts(&gateway, &[("delivered", "0"), ("lost", "2")]).await;
    let said = gateway.stopped().await;
    assert!(!said.contains("the webhook of approvals fails"), "{said}");
}

#[tokio::test]
async fn what_is_pending_is_sent_again_after_a_restart() {
    let service = Service::default();
    let url = service.failing(0).await;
    let mut killed = Gateway::configured(&with_webhook(&url)).await;
    let waits = killed.begin(DELETE, &order(1));
    let before = service.received(1, &killed).await.remove(0);
    killed.killed().await;
    drop(waits.await);
    let again = callward(&[&SERVE[..], &["--config", killed.config()]].concat());
    let gateway = Gateway::started(again, None, Some(killed.state.clone())).await;
    let (headers, body) = service.received(2, &gateway).await.remove(1);
    assert_eq!(
        (&headers["webhook-id"], body),
        (&before.0["webhook-id"], before.1)
    );
}

#[tokio::test]
async fn without_a_webhook_no_answer_is_taken() {
    let gateway = Gateway::configured(&config("")).await;
    let body = json!({"id": "0", "approves": true, "by": "ada"});
    let (status, said) = answers(&gateway, "0", &body, SECRET, 0).await;
    assert_eq!(status, 404, "{said}");
    assert!(said.contains("no `[approvals.webhook]`"), "{said}");
}
