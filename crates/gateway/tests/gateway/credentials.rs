//! What each bad credential is answered over each transport, in both eras, and what is left of it.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::Path;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::routing::get;
use callward_auth::keys::{KeyFile, NewKey};
use reqwest::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, Request};
use ring::hmac;
use ring::signature::KeyPair;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};

use crate::auth::has_no;
use crate::support::{Gateway, http, http_over, message, sample, serve, within};
use crate::tls::Own;
use crate::tokens::{Issuer, RESOURCE};

const METADATA: &str = "https://gateway.example/.well-known/oauth-protected-resource/mcp";

/// Why a request is refused, the tokens in its headers, and whether one is in its address.
type Row = (&'static str, Vec<String>, bool);

/// Returns the URLs of issuers whose keys cannot be read: as they do not listen, do not answer,
/// answer too much, and answer something else.
async fn broken() -> (TcpSocket, Vec<String>) {
    let down = TcpSocket::new_v4().unwrap();
    down.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let up = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls = [
        (down.local_addr().unwrap(), "down"),
        (up.local_addr().unwrap(), "slow"),
        (up.local_addr().unwrap(), "huge"),
        (up.local_addr().unwrap(), "malformed"),
    ];
    let urls = urls.map(|(address, name)| format!("http://{address}/{name}"));
    let routes = Router::new()
        .route("/slow", get(pending::<()>))
        .route("/huge", get(async || " ".repeat((1 << 20) + 1)))
        .route("/malformed", get(async || "<html>"));
    tokio::spawn(async move { axum::serve(up, routes).await });
    (down, urls.into())
}

/// Creates a key that ended in 1970, and one that was revoked then.
fn keys(path: &Path) -> [String; 2] {
    let file = KeyFile::new(path);
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let create = |name: &str, expires| {
        let mut new = NewKey::default();
        new.name = name.to_owned();
        new.expires = expires;
        let (secret, _) = file.create(new, SystemTime::UNIX_EPOCH).unwrap();
        secret.expose().to_owned()
    };
    let keys = [create("old", Some(then)), create("lost", None)];
    file.revoke("lost", then).unwrap();
    keys
}

fn rows(issuer: &Issuer, broken: &[String], [old, lost]: [String; 2]) -> Vec<Row> {
    let sign = |text: &[u8]| issuer.key.sign(text).as_ref().to_vec();
    let public = hmac::Key::new(hmac::HMAC_SHA256, issuer.key.public_key().as_ref());
    let by_public = |text: &[u8]| hmac::sign(&public, text).as_ref().to_vec();
    let claiming = |claims: Value| issuer.signed(&json!({}), &claims, sign);
    let headed = |header: Value| issuer.signed(&header, &json!({}), sign);
    let hs256 = issuer.signed(&json!({"alg": "HS256"}), &json!({}), by_public);
    let none = issuer.signed(&json!({"alg": "none"}), &json!({}), |_| Vec::new());
    let forged = issuer.signed(&json!({}), &json!({}), |text| sign(&text[1..]));
    let good = issuer.token(RESOURCE, "tools:read");
    let (past, future) = (1_000_000_000, 4_000_000_000_u64);
    let other = "https://other.example";
    let one = [
        ("expired", claiming(json!({ "exp": past }))),
        ("not_yet_valid", claiming(json!({ "nbf": future }))),
        ("audience", claiming(json!({ "aud": other }))),
        ("issuer", claiming(json!({ "iss": other }))),
        ("algorithm", none),
        ("algorithm", hs256),
        ("signature", forged),
        ("unknown_key_id", headed(json!({"kid": "two"}))),
        ("too_long", claiming(json!({"more": "a".repeat(8 * 1024)}))),
        ("malformed", String::new()),
        ("unknown_key", "cwk_".to_owned()),
        ("revoked", lost),
        ("expired", old),
    ];
    let of_broken = |issuer| ("unavailable", claiming(json!({ "iss": issuer })));
    let one = one.into_iter().chain(broken.iter().map(of_broken));
    let mut rows: Vec<Row> = one
        .map(|(reason, token)| (reason, vec![token], false))
        .collect();
    rows.extend([
        ("missing", vec![], false),
        ("malformed", vec![], true),
        ("malformed", vec![good.clone()], true),
        ("several", vec![good.clone(), good], false),
    ]);
    rows
}

/// A call in the era of 2026-07-28, or in the one before.
fn call(gateway: &Gateway, is_modern: bool, tool: &str, tokens: &[String]) -> Request {
    let arguments = json!({"order_id": 1});
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = match is_modern {
        true => gateway.mcp_request(tool, &arguments, &json!({})),
        false => message(http().post(&gateway.url), &body),
    };
    let mut request = request.build().unwrap();
    for token in tokens {
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().append(AUTHORIZATION, value);
    }
    request
}

/// Returns the status, the challenge, and whether it is said when to try again.
async fn answered(client: &Client, request: Request) -> (u16, String, bool) {
    let answer = within("an answer", client.execute(request)).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers());
    let challenge = headers.get(WWW_AUTHENTICATE);
    let challenge = challenge.map(|value| value.to_str().unwrap().to_owned());
    let says_when = headers.contains_key(RETRY_AFTER);
    (status, challenge.unwrap_or_default(), says_when)
}

/// Shows each credential to a gateway, over each client, in both eras.
async fn refuses(config: &str, clients: &[Client], rows: &[Row], good: &str) {
    let (mut command, file) = serve(config);
    command.env("CALLWARD_LOG", "callward=debug");
    let gateway = Gateway::served((command, file), clients[0].clone()).await;
    let (read, delete) = ("orders__get_order", "orders__delete_order");
    let about = format!("resource_metadata=\"{METADATA}\"");
    let ways: Vec<_> = clients
        .iter()
        .flat_map(|client| [(client, true), (client, false)])
        .collect();
    let mut counts = BTreeMap::new();
    for (reason, tokens, is_in_query) in rows {
        let challenge = match *reason {
            "unavailable" => String::new(),
            "missing" => format!("Bearer {about}, scope=\"tools:read\""),
            _ => format!("Bearer error=\"invalid_token\", {about}, scope=\"tools:read\""),
        };
        let is_unavailable = *reason == "unavailable";
        let status = if is_unavailable { 503 } else { 401 };
        let expected = (status, challenge, is_unavailable);
        for (client, is_modern) in &ways {
            let mut request = call(&gateway, *is_modern, read, tokens);
            let query = format!("access_token={good}");
            request.url_mut().set_query(is_in_query.then_some(&*query));
            assert_eq!(answered(client, request).await, expected, "{reason}");
        }
        *counts.entry(*reason).or_insert(0) += ways.len();
    }
    let good = [good.to_owned()];
    let scopes = "scope=\"tools:read tools:destroy\"";
    let step_up = format!("Bearer error=\"insufficient_scope\", {scopes}, {about}");
    for (client, is_modern) in &ways {
        for (tool, status, challenge) in [(read, 200, ""), (delete, 403, &*step_up)] {
            let request = call(&gateway, *is_modern, tool, &good);
            let expected = (status, challenge.to_owned(), false);
            assert_eq!(answered(client, request).await, expected, "{tool}");
        }
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(reason, count)| {
            format!("callward_auth_refusals_total{{callward_reason=\"{reason}\"}} {count}")
        })
        .collect();
    let lines: Vec<_> = counts.iter().map(String::as_str).collect();
    gateway.measures(&lines).await;
    let state = gateway.state.clone();
    let said = gateway.stopped().await;
    assert!(said.contains("a request is refused"), "{said}");
    // the signature of a token, all of a key
    let shown = rows.iter().flat_map(|(_, tokens, _)| tokens).chain(&good);
    let secrets = shown.filter_map(|token| token.rsplit('.').next());
    for secret in secrets.filter(|secret| secret.len() > "cwk_".len()) {
        assert!(!said.contains(secret), "{said}");
        has_no(state.path(), secret);
    }
}

#[tokio::test]
async fn bad_credentials_are_refused_alike_over_all_transports() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let (issuer, (_down, broken), keys) = (Issuer::start().await, broken().await, keys(&file));
    let mut auth = format!("[auth]\nkeys = {file:?}\nresource = {RESOURCE:?}\n");
    for url in broken.iter().chain([&issuer.url]) {
        auth += &format!("[[auth.issuers]]\nissuer = {url:?}\naudience = [{RESOURCE:?}]\n");
        if *url != issuer.url {
            auth += &format!("jwks_url = {url:?}\n");
        }
    }
    let rows = rows(&issuer, &broken, keys);
    let good = issuer.token(RESOURCE, "tools:read");
    let own = Own::new();
    let open = [http()];
    let secure = ["http/1.1", "h2"].map(|protocol| http_over(own.client(protocol, None)));
    let (plain, tls) = (sample("orders") + &auth, own.config("") + &auth);
    tokio::join!(
        refuses(&plain, &open, &rows, &good),
        refuses(&tls, &secure, &rows, &good),
    );
}
