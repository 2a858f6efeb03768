//! `auth.issuers`: tokens of an OAuth issuer, and the challenge to clients without one.

use axum::Router;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::support::{Gateway, http, sample, within};

pub(crate) const RESOURCE: &str = "https://gateway.example/mcp";

/// An issuer with one key, on a port of its own.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) key: Ed25519KeyPair,
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        let x = base64(key.public_key());
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x}]});
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let about = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let json = |value: Value| {
            get(async move || ([(CONTENT_TYPE, "application/json")], value.to_string()))
        };
        let routes = Router::new()
            .route("/.well-known/oauth-authorization-server", json(about))
            .route("/keys", json(keys));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, key }
    }

    /// Signs a token for an audience, with these scopes.
    pub(crate) fn token(&self, audience: &str, scope: &str) -> String {
        let more = json!({ "aud": audience, "scope": scope });
        self.signed(&json!({}), &more, |text| {
            self.key.sign(text).as_ref().to_vec()
        })
    }

    /// Signs a token that is valid but for these members of its header and its claims.
    pub(crate) fn signed(
        &self,
        header: &Value,
        claims: &Value,
        sign: impl Fn(&[u8]) -> Vec<u8>,
    ) -> String {
        let mut parts = [
            json!({"alg": "EdDSA", "kid": "one"}),
            json!({"iss": self.url, "sub": "ada", "aud": RESOURCE, "exp": 4_102_444_800_u64}),
        ];
        for (part, more) in parts.iter_mut().zip([header, claims]) {
            let more = more.as_object().unwrap().clone();
            part.as_object_mut().unwrap().extend(more);
        }
        let signed = parts.map(|part| base64(part.to_string())).join(".");
        let signature = base64(sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// Calls a tool; returns the status and the challenge.
async fn call(gateway: &Gateway, tool: &str, token: Option<&str>) -> (StatusCode, String) {
    let mut request = gateway.mcp_request(tool, &json!({"order_id": 1}), &json!({}));
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let answer = within("an answer", request.send()).await.unwrap();
    let challenge = answer.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge.map(|value| value.to_str().unwrap().to_owned());
    (answer.status(), challenge.unwrap_or_default())
}

#[tokio::test]
async fn tokens_of_an_issuer_are_accepted_within_their_scopes() {
    let issuer = Issuer::start().await;
    let config = format!(
        "[auth]\nresource = \"{RESOURCE}\"\n[[auth.issuers]]\nissuer = {:?}\naudience = [\"{RESOURCE}\"]\n{}",
        issuer.url,
        sample("orders")
    );
    let gateway = Gateway::fixed(&config).await;
    let metadata = "https://gateway.example/.well-known/oauth-protected-resource/mcp";
    let (read, delete) = ("orders__get_order", "orders__delete_order");
    let reader = issuer.token(RESOURCE, "tools:read");
    let all = issuer.token(RESOURCE, "tools:read tools:destroy");
    for (tool, token, status, error) in [
        (read, None, StatusCode::UNAUTHORIZED, "scope=\"tools:read\""),
        (read, Some(&*reader), StatusCode::OK, ""),
        (
            delete,
            Some(&reader),
            StatusCode::FORBIDDEN,
            "scope=\"tools:read tools:destroy\"",
        ),
        (delete, Some(&all), StatusCode::OK, ""),
    ] {
        let (found, challenge) = call(&gateway, tool, token).await;
        assert_eq!(found, status, "{tool} {challenge}");
        assert!(challenge.contains(error), "{tool} {challenge}");
        let is_named = challenge.contains(&format!("resource_metadata=\"{metadata}\""));
        assert_eq!(is_named, status != StatusCode::OK, "{challenge}");
    }
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let url = gateway.url.replace("/mcp", path);
        let answer = within("the metadata", http().get(url).send())
            .await
            .unwrap();
        let about: Value = answer.json().await.unwrap();
        assert_eq!(about["resource"], RESOURCE);
        assert_eq!(about["authorization_servers"], json!([issuer.url]));
    }
}
