use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::get;
use tokio::time::{advance, sleep};

use super::*;
use crate::tokens::jwks::COOL_DOWN;

#[tokio::test(start_paused = true)]
async fn random_tokens_cause_two_fetches_at_most() {
    let signer = Signer::new("EdDSA");
    let (tokens, script) = trusting(&json!({}), &[signer.jwk()]);
    let claims = with(&json!({})).to_string();
    let random = |kid: u32| {
        let header = json!({"alg": "EdDSA", "kid": format!("random-{kid}")});
        format!(
            "{}.{}.{}",
            base64(header.to_string()),
            base64(&claims),
            base64([0; 64])
        )
    };
    for kid in 0..10_000 {
        assert_eq!(reason(&tokens, &random(kid)).await, Reason::UnknownKeyId);
        advance(Duration::from_millis(5)).await;
    }
    assert_eq!(script.count(), 2);
    // the issuer's keys were never forgotten
    assert!(verify(&tokens, &signer.sign(&json!({}))).await.is_ok());
    let stranger = signer.sign(&json!({"iss": "https://evil.example"}));
    advance(COOL_DOWN).await;
    assert_eq!(reason(&tokens, &stranger).await, Reason::Issuer);
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn all_issuers_share_a_bucket_of_fetches() {
    let script = Arc::new(Script::default());
    let name = |n: usize| format!("https://{n}.example");
    let configs = (0..25).map(|n| config(&json!({"issuer": name(n)})));
    let http = Arc::new(Scripted(script.clone()));
    let tokens = Tokens::with(configs.collect(), http).unwrap();
    let signer = Signer::new("EdDSA");
    script.answers(JWKS, &json!({"keys": [signer.jwk()]}));
    for n in 0..25 {
        let result = verify(&tokens, &signer.sign(&json!({"iss": name(n)}))).await;
        let want = (n >= 20).then_some(Reason::Unavailable);
        assert_eq!(result.err().map(|refusal| refusal.reason), want, "{n}");
    }
    advance(Duration::from_secs(3)).await;
    assert!(
        verify(&tokens, &signer.sign(&json!({"iss": name(20)})))
            .await
            .is_ok()
    );
    assert_eq!(
        reason(&tokens, &signer.sign(&json!({"iss": name(21)}))).await,
        Reason::Unavailable
    );
    assert_eq!(script.count(), 21);
}

#[tokio::test(start_paused = true)]
async fn concurrent_tokens_share_a_fetch_that_outlives_them() {
    let signer = Signer::new("EdDSA");
    let (tokens, script) = trusting(&json!({}), &[signer.jwk()]);
    *script.delay.lock() = Duration::from_secs(2);
    let token = signer.sign(&json!({}));
    let first = tokio::time::timeout(Duration::from_secs(1), verify(&tokens, &token));
    assert!(first.await.is_err());
    let others: Vec<_> = (0..50)
        .map(|_| {
            tokio::spawn({
                let (tokens, token) = (tokens.clone(), token.clone());
                async move { verify(&tokens, &token).await }
            })
        })
        .collect();
    for other in others {
        assert!(other.await.unwrap().is_ok());
    }
    assert_eq!(script.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_follow_the_issuer_and_stay_while_it_is_down() {
    let (old, new) = (Signer::new("ES256"), Signer::new("EdDSA"));
    let (tokens, script) = trusting(&json!({}), &[old.jwk()]);
    assert!(verify(&tokens, &old.sign(&json!({}))).await.is_ok());
    // down: a key that is not known cannot be found out, and what is known stays
    let keys = script.answers.lock().remove(JWKS);
    advance(COOL_DOWN).await;
    for wait in [1, 2, 4, 8, 16, 30, 30].map(Duration::from_secs) {
        let refusal = verify(&tokens, &new.sign(&json!({}))).await.unwrap_err();
        let expected = (Reason::Unavailable, Some(wait));
        assert_eq!((refusal.reason, refusal.retry_after), expected);
        assert!(
            refusal
                .to_string()
                .contains("its issuer gives no answer: try again")
        );
        advance(wait).await;
    }
    advance(Duration::from_secs(3600)).await;
    let fresh = |sub: &str| old.sign(&json!({"sub": sub, "exp": seconds(9000)}));
    assert!(verify(&tokens, &fresh("a")).await.is_ok());
    // up again, with another key: used as soon as a token needs it
    script.answers(JWKS, &json!({"keys": [new.jwk(), serde_json::from_str::<Value>(&keys.unwrap()).unwrap()["keys"][0]]}));
    advance(COOL_DOWN).await;
    assert!(verify(&tokens, &new.sign(&json!({}))).await.is_ok());
    // the old one is withdrawn, which is noticed without a miss
    script.answers(JWKS, &json!({"keys": [new.jwk()]}));
    advance(Duration::from_secs(15 * 60)).await;
    assert!(verify(&tokens, &fresh("b")).await.is_ok());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(reason(&tokens, &fresh("c")).await, Reason::UnknownKeyId);
    // a key is replaced without another id
    let replaced = Signer::new("EdDSA");
    script.answers(JWKS, &json!({"keys": [replaced.jwk()]}));
    assert_eq!(
        reason(&tokens, &replaced.sign(&json!({}))).await,
        Reason::Signature
    );
    advance(COOL_DOWN).await;
    assert!(verify(&tokens, &replaced.sign(&json!({}))).await.is_ok());
    // and by one of another kind
    let other = Signer::new("ES384");
    let mut key = other.jwk();
    key["kid"] = json!("EdDSA");
    script.answers(JWKS, &json!({"keys": [key]}));
    advance(COOL_DOWN).await;
    let head = json!({"alg": "ES384", "kid": "EdDSA"}).to_string();
    let token = other.sign_texts(&head, &with(&json!({})).to_string());
    assert!(verify(&tokens, &token).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn keys_that_cannot_be_had_make_tokens_unavailable() {
    let signer = Signer::new("EdDSA");
    let many: Vec<_> = (0..101).map(|_| signer.jwk()).collect();
    let metadata = |issuer: &str, uri: &str| json!({"issuer": issuer, "jwks_uri": uri}).to_string();
    let near = "http://127.0.0.1/keys";
    let known = "https://id.example/.well-known/oauth-authorization-server/realms/main";
    let oidc = "https://id.example/realms/main/.well-known/openid-configuration";
    for (at, body, delay, want) in [
        (known, metadata(ISSUER, JWKS), 0, None),
        (oidc, metadata(ISSUER, JWKS), 0, None),
        (
            known,
            metadata("https://id.example", JWKS),
            0,
            Some(Reason::Unavailable),
        ),
        (known, metadata(ISSUER, near), 0, Some(Reason::Unavailable)),
        (known, metadata(ISSUER, JWKS), 3, Some(Reason::Unavailable)),
        (JWKS, "{}".to_owned(), 0, Some(Reason::Unavailable)),
        (JWKS, "<html>".to_owned(), 0, Some(Reason::Unavailable)),
        (
            JWKS,
            json!({"keys": many}).to_string(),
            0,
            Some(Reason::Unavailable),
        ),
        (
            JWKS,
            json!({"keys": [signer.jwk()]}).to_string(),
            6,
            Some(Reason::Unavailable),
        ),
        (JWKS, json!({"keys": [signer.jwk()]}).to_string(), 4, None),
    ] {
        let jwks_url = (at == JWKS).then_some(JWKS);
        let (tokens, script) = trusting(&json!({"jwks_url": jwks_url}), &[signer.jwk()]);
        script.answers(at, &body);
        script.answers(near, &json!({"keys": [signer.jwk()]}));
        *script.delay.lock() = Duration::from_secs(delay);
        let result = verify(&tokens, &signer.sign(&json!({}))).await;
        assert_eq!(
            result.err().map(|refusal| refusal.reason),
            want,
            "{at} {delay} {body}"
        );
    }
}

#[tokio::test]
async fn a_real_server_is_asked_without_redirects_and_with_a_limit() {
    let signer = Signer::new("RS256");
    let keys = json!({"keys": [signer.jwk()]}).to_string();
    let huge = format!("{}{keys}", " ".repeat(1 << 20));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let metadata = json!({"issuer": base, "jwks_uri": format!("{base}/keys")}).to_string();
    let routes = axum::Router::new()
        .route("/keys", get(async move || keys))
        .route("/huge", get(async move || huge))
        .route(
            "/elsewhere",
            get(async || (StatusCode::FOUND, [(LOCATION, "/keys")])),
        )
        .route(
            "/.well-known/openid-configuration",
            get(async move || metadata),
        );
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    for (path, want) in [
        (Some("/keys"), None),
        (None, None),
        (Some("/huge"), Some(Reason::Unavailable)),
        (Some("/elsewhere"), Some(Reason::Unavailable)),
        (Some("/none"), Some(Reason::Unavailable)),
    ] {
        let url = path.map(|path| format!("{base}{path}"));
        let tokens = Tokens::new(vec![config(&json!({"issuer": base, "jwks_url": url}))]);
        let result = verify(&tokens.unwrap(), &signer.sign(&json!({"iss": base}))).await;
        assert_eq!(result.err().map(|refusal| refusal.reason), want, "{path:?}");
    }
    server.abort();
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let opaque = |url: &str| json!({"url": url, "client_id": "gw", "client_secret": "hush"});
    for (members, part) in [
        (
            json!({"issuer": "id.example"}),
            "`issuer` must be an https URL",
        ),
        (
            json!({"issuer": "http://id.example"}),
            "or http on loopback",
        ),
        (json!({"issuer": "https://id.example?x"}), "no query"),
        (json!({"audience": []}), "`audience` must name at least one"),
        (json!({"audience": [""]}), "`audience`"),
        (json!({"jwks_url": "http://10.0.0.1/keys"}), "`jwks_url`"),
        (
            json!({"jwks_url": "https://u:p@id.example"}),
            "without credentials",
        ),
        (json!({"leeway": "11m"}), "`leeway` is 11m"),
        (
            json!({"introspection": opaque("http://id.example")}),
            "`introspection.url`",
        ),
    ] {
        let error = Tokens::new(vec![config(&members)]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("u:p"), "{error}");
    }
    let second =
        json!({"issuer": "https://b.example", "introspection": opaque("https://b.example")});
    let first = config(&json!({"introspection": opaque("https://id.example")}));
    assert!(Tokens::new(vec![first.clone(), config(&second)]).is_err());
    assert!(Tokens::new(vec![first.clone(), first.clone()]).is_err());
    assert!(!format!("{first:?}").contains("hush"));
    assert!(
        Tokens::new(vec![
            first,
            config(&json!({"issuer": "http://[::1]:8080/"}))
        ])
        .is_ok()
    );
    let unknown = json!({"issuer": ISSUER, "audience": [AUDIENCE], "jwks": JWKS});
    let error = serde_json::from_value::<IssuerConfig>(unknown)
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown field `jwks`"), "{error}");
}
