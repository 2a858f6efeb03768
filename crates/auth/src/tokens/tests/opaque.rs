use base64::engine::general_purpose::STANDARD;
use callward_core::{CredentialKind, Principal};
use futures_util::future::join_all;
use http::header::AUTHORIZATION;
use tokio::time::{advance, sleep};

use super::*;
use crate::tokens::introspect::MAX_RUNNING;

const ASK: &str = "https://id.example/introspect";

fn asking() -> (Tokens, Arc<Script>) {
    let settings = json!({"url": ASK, "client_id": "gw:1", "client_secret": "hush hush"});
    trusting(&json!({"introspection": settings}), &[])
}

/// What the issuer says of an active token.
fn active(claims: &Value) -> Value {
    let mut answer = with(claims);
    answer["active"] = json!(true);
    answer
}

#[tokio::test(start_paused = true)]
async fn an_issuer_is_asked_about_an_opaque_token() {
    let (tokens, script) = asking();
    script.answers(ASK, &active(&json!({"iss": null, "scope": "tools:read"})));
    let caller = verify(&tokens, "opaque&1").await.unwrap();
    assert_eq!(caller.principal, Principal::of(ISSUER, "ada"));
    assert_eq!(caller.credential.kind, CredentialKind::Opaque);
    assert_eq!(
        caller.credential.scopes,
        Some(BTreeSet::from(["tools:read".to_owned()]))
    );
    let post = script.asked.lock().remove(0).post.unwrap();
    // RFC 6749, 2.3.1: both are encoded before they are joined
    let basic = STANDARD.encode("gw%3A1:hush+hush");
    assert_eq!(post.headers[AUTHORIZATION], format!("Basic {basic}"));
    assert_eq!(post.body, "token=opaque%261&token_type_hint=access_token");
}

#[tokio::test(start_paused = true)]
async fn answers_are_judged_as_claims_are() {
    for (answer, want) in [
        (active(&json!({"exp": null})), None),
        (
            active(&json!({"exp": seconds(-100)})),
            Some(Reason::Expired),
        ),
        (
            active(&json!({"iss": "https://other.example"})),
            Some(Reason::Issuer),
        ),
        (active(&json!({"aud": null})), Some(Reason::Claims)),
        (active(&json!({"aud": "other"})), Some(Reason::Audience)),
        (active(&json!({"sub": null})), Some(Reason::Claims)),
        (
            json!({"active": false, "sub": "ada"}),
            Some(Reason::Inactive),
        ),
        (
            json!({"active": "true", "sub": "ada"}),
            Some(Reason::Unavailable),
        ),
        (json!([]), Some(Reason::Unavailable)),
    ] {
        let (tokens, script) = asking();
        script.answers(ASK, &answer);
        let result = verify(&tokens, "opaque").await;
        assert_eq!(result.err().map(|refusal| refusal.reason), want, "{answer}");
    }
    // a JWT is never asked about
    let (tokens, script) = asking();
    let signer = Signer::new("ES256");
    assert_eq!(
        reason(&tokens, &signer.sign(&json!({}))).await,
        Reason::UnknownKeyId
    );
    assert!(script.asked.lock().iter().all(|ask| ask.post.is_none()));
}

#[tokio::test(start_paused = true)]
async fn answers_are_remembered_for_their_time() {
    for (answer, kept) in [
        (active(&json!({"exp": seconds(3000)})), 60),
        (json!({"active": false}), 10),
    ] {
        let (tokens, script) = asking();
        script.answers(ASK, &answer);
        for (after, count) in [(0, 1), (kept - 1, 1), (1, 2)] {
            advance(Duration::from_secs(after)).await;
            let _ = verify(&tokens, "opaque").await;
            assert_eq!(script.count(), count, "{answer} after {after} s");
        }
    }
    // where there is no answer, nothing is remembered
    let (tokens, script) = asking();
    let refusal = verify(&tokens, "opaque").await.unwrap_err();
    assert_eq!(refusal.reason, Reason::Unavailable);
    assert!(refusal.retry_after.is_some());
    script.answers(ASK, &active(&json!({})));
    assert!(verify(&tokens, "opaque").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_token_is_asked_about_once_and_only_some_at_a_time() {
    let (tokens, script) = asking();
    script.answers(ASK, &active(&json!({})));
    *script.delay.lock() = Duration::from_secs(1);
    let same = join_all((0..100).map(|_| verify(&tokens, "same"))).await;
    assert!(same.iter().all(Result::is_ok));
    assert_eq!(script.count(), 1);
    let texts: Vec<_> = (0..2 * MAX_RUNNING).map(|n| format!("token-{n}")).collect();
    let all = join_all(texts.iter().map(|text| verify(&tokens, text))).await;
    let refused = all
        .iter()
        .filter_map(|one| one.as_ref().err())
        .map(|error| error.reason);
    assert_eq!(
        refused.collect::<Vec<_>>(),
        vec![Reason::Unavailable; MAX_RUNNING]
    );
    assert_eq!(script.count(), 1 + MAX_RUNNING);
}

#[tokio::test(start_paused = true)]
async fn one_network_keeps_no_other_out() {
    let (tokens, script) = asking();
    script.answers(ASK, &active(&json!({})));
    *script.delay.lock() = Duration::from_secs(4);
    // of one network, as one machine has
    let floods = (0..MAX_RUNNING).map(|n| {
        let (tokens, peer) = (tokens.clone(), format!("2001:db8::{n:x}").parse().ok());
        tokio::spawn(async move { verify_from(&tokens, &format!("flood-{n}"), peer).await })
    });
    let floods: Vec<_> = floods.collect();
    sleep(Duration::from_millis(1)).await;
    let of = |peer: &str, token| {
        let (tokens, peer) = (tokens.clone(), peer.parse().ok());
        async move {
            verify_from(&tokens, token, peer)
                .await
                .map_err(|it| it.reason)
        }
    };
    assert_eq!(
        of("2001:db8::ff", "flood").await.unwrap_err(),
        Reason::Unavailable
    );
    let users = ["::ffff:10.0.0.1", "2001:db8:0:1::1"].map(|user| of(user, user));
    assert!(join_all(users).await.iter().all(Result::is_ok));
    let ended = join_all(floods)
        .await
        .into_iter()
        .filter(|one| matches!(one, Ok(Err(_))));
    assert_eq!(ended.count(), 2);
}
