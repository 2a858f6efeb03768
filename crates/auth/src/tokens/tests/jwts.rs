use callward_core::{CredentialKind, Principal};
use proptest::prelude::*;
use ring::hmac;

use super::*;

const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

#[tokio::test(start_paused = true)]
async fn a_real_token_of_each_algorithm_is_verified() {
    for algorithm in ALGORITHMS {
        let signer = Signer::new(algorithm);
        let (mut named, other) = (signer.jwk(), Signer::new("ES256").jwk());
        for known in [Value::Null, json!(algorithm)] {
            named["alg"] = known.clone();
            if known.is_null() {
                named.as_object_mut().unwrap().remove("alg");
            }
            let mut other = other.clone();
            other["kid"] = json!("other");
            let (tokens, _) = trusting(&json!({}), &[other, named.clone()]);
            let caller = verify(&tokens, &signer.sign(&json!({}))).await;
            let caller = caller.unwrap_or_else(|error| panic!("{algorithm} {known}: {error}"));
            assert_eq!(caller.principal, Principal::of(ISSUER, "ada"));
            assert_eq!(caller.credential.kind, CredentialKind::Jwt);
            // and not with the signature of other claims
            let (head, signature) = signer.sign(&json!({})).rsplit_once('.').map(owned).unwrap();
            let forged = signer.sign(&json!({"sub": "eve"}));
            let forged = forged.rsplit_once('.').unwrap().0;
            assert_ne!(head, forged);
            let forged = format!("{forged}.{signature}");
            assert_eq!(
                reason(&tokens, &forged).await,
                Reason::Signature,
                "{algorithm}"
            );
        }
    }
}

fn owned((one, two): (&str, &str)) -> (String, String) {
    (one.to_owned(), two.to_owned())
}

#[tokio::test(start_paused = true)]
async fn claims_that_are_not_right_are_refused() {
    let signer = Signer::new("ES256");
    let (tokens, _) = trusting(&json!({"required": ["tenant.id"]}), &[signer.jwk()]);
    let tenant = json!({"id": 7});
    for (claims, want) in [
        (json!({"exp": seconds(-61)}), Some(Reason::Expired)),
        (json!({"exp": seconds(-30)}), None),
        (json!({"exp": 0}), Some(Reason::Expired)),
        (
            json!({"exp": format!("{}", seconds(300))}),
            Some(Reason::Claims),
        ),
        (json!({"exp": -1}), Some(Reason::Claims)),
        (json!({"exp": 1e30}), Some(Reason::Claims)),
        (json!({"exp": u64::MAX}), Some(Reason::Claims)),
        (json!({"exp": null}), Some(Reason::Claims)),
        (json!({"nbf": seconds(90)}), Some(Reason::NotYetValid)),
        (json!({"nbf": seconds(30)}), None),
        (json!({"nbf": "soon"}), Some(Reason::Claims)),
        (
            json!({"aud": "https://other.example"}),
            Some(Reason::Audience),
        ),
        (json!({"aud": ["https://other.example", AUDIENCE]}), None),
        (
            json!({"aud": format!("{AUDIENCE} x")}),
            Some(Reason::Audience),
        ),
        (json!({"aud": []}), Some(Reason::Audience)),
        (json!({"aud": [7]}), Some(Reason::Claims)),
        (json!({"aud": null}), Some(Reason::Claims)),
        (json!({"iss": format!("{ISSUER}/")}), Some(Reason::Issuer)),
        (json!({"iss": [ISSUER]}), Some(Reason::Issuer)),
        (json!({"iss": null}), Some(Reason::Issuer)),
        (json!({"sub": null}), Some(Reason::Claims)),
        (json!({"sub": ""}), Some(Reason::Claims)),
        (json!({"sub": "a\nb"}), Some(Reason::Claims)),
        (json!({"sub": "a\u{202e}b"}), Some(Reason::Claims)),
        (json!({"sub": 7}), Some(Reason::Claims)),
        (json!({"tenant": {}}), Some(Reason::Claims)),
        (json!({"scope": 7}), Some(Reason::Claims)),
    ] {
        let mut claims = claims;
        claims
            .as_object_mut()
            .unwrap()
            .entry("tenant")
            .or_insert_with(|| tenant.clone());
        let result = verify(&tokens, &signer.sign(&claims)).await;
        assert_eq!(result.err().map(|refusal| refusal.reason), want, "{claims}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_not_signed_right_are_refused() {
    let (rsa, ec, other) = (
        Signer::new("RS256"),
        Signer::new("ES256"),
        Signer::new("ES256"),
    );
    let mut only_pss = rsa.jwk();
    only_pss["kid"] = json!("pss");
    only_pss["alg"] = json!("PS256");
    let secret = json!({"kty": "oct", "kid": "secret", "alg": "HS256", "k": base64("secret")});
    let mut to_encrypt = ec.jwk();
    to_encrypt["kid"] = json!("enc");
    to_encrypt["use"] = json!("enc");
    let keys = [
        rsa.jwk(),
        ec.jwk(),
        only_pss,
        secret,
        to_encrypt,
        json!({"kty": "new", "kid": 7}),
    ];
    let (tokens, _) = trusting(&json!({}), &keys);
    let claims = with(&json!({})).to_string();
    // the classic attack: the public key as the secret
    let public = hmac::Key::new(hmac::HMAC_SHA256, rsa_public().as_slice());
    let head = format!(
        "{}.{}",
        base64(r#"{"alg":"HS256","kid":"RS256"}"#),
        base64(&claims)
    );
    let confused = format!("{head}.{}", base64(hmac::sign(&public, head.as_bytes())));
    let unsigned = |alg: &str| {
        format!(
            "{}.{}.",
            base64(format!(r#"{{"alg":{alg}}}"#)),
            base64(&claims)
        )
    };
    let good = ec.sign(&json!({}));
    let signed = |header: &str| ec.sign_texts(header, &claims);
    let twice = r#"{"iss":"https://a.example","sub":"eve","#.to_owned() + &claims[1..];
    for (token, want) in [
        (good.clone(), None),
        (signed(r#"{"alg":"ES256"}"#), None),
        (
            signed(r#"{"alg":"ES256","kid":"ES256","typ":"at+JWT"}"#),
            None,
        ),
        (
            signed(r#"{"alg":"ES256","kid":"ES256","typ":"logout+jwt"}"#),
            Some(Reason::Malformed),
        ),
        (
            signed(r#"{"alg":"ES256","kid":"ES256","crit":["exp"]}"#),
            Some(Reason::Malformed),
        ),
        (
            signed(r#"{"alg":"ES256","kid":7}"#),
            Some(Reason::Malformed),
        ),
        (
            signed(r#"{"alg":"none","alg":"ES256"}"#),
            Some(Reason::Malformed),
        ),
        (
            signed(r#"{"alg":"RS256","kid":"ES256"}"#),
            Some(Reason::Algorithm),
        ),
        (
            signed(r#"{"alg":"ES256","kid":"RS256"}"#),
            Some(Reason::Algorithm),
        ),
        (
            signed(r#"{"alg":"RS256","kid":"pss"}"#),
            Some(Reason::Algorithm),
        ),
        (
            signed(r#"{"alg":"ES256","kid":"enc"}"#),
            Some(Reason::UnknownKeyId),
        ),
        (
            signed(r#"{"alg":"ES256","kid":"other"}"#),
            Some(Reason::UnknownKeyId),
        ),
        (confused, Some(Reason::Algorithm)),
        (
            signed(r#"{"alg":"HS256","kid":"secret"}"#),
            Some(Reason::Algorithm),
        ),
        (unsigned(r#""none""#), Some(Reason::Algorithm)),
        (unsigned("null"), Some(Reason::Algorithm)),
        (other.sign(&json!({})), Some(Reason::Signature)),
        (unsigned(r#""ES256""#), Some(Reason::Signature)),
        (format!("{good}="), Some(Reason::Malformed)),
        (good[..good.len() / 2].to_owned(), Some(Reason::Malformed)),
        (good.replacen('.', "..", 1), Some(Reason::Malformed)),
        (
            ec.sign_texts(r#"{"alg":"ES256","kid":"ES256"}"#, &twice),
            Some(Reason::Malformed),
        ),
        (
            ec.sign_texts(r#"{"alg":"ES256","kid":"ES256"}"#, "[]"),
            Some(Reason::Malformed),
        ),
        (
            ec.sign(&json!({"pad": "x".repeat(8 << 10)})),
            Some(Reason::TooLong),
        ),
        (String::new(), Some(Reason::Malformed)),
        ("..".to_owned(), Some(Reason::Malformed)),
    ] {
        let result = verify(&tokens, &token).await;
        assert_eq!(result.err().map(|refusal| refusal.reason), want, "{token}");
    }
}

fn rsa_public() -> Vec<u8> {
    rsa().public().as_ref().to_vec()
}

#[tokio::test(start_paused = true)]
async fn roles_and_scopes_are_those_of_the_claims() {
    let signer = Signer::new("EdDSA");
    let nested = json!({"realm_access": {"roles": ["a", "b"]}});
    let url = "https://ex.am/roles";
    for (path, claims, roles, scopes) in [
        ("realm_access.roles", nested.clone(), "a b", ""),
        ("realm_access.groups", nested, "", ""),
        (
            "groups",
            json!({"groups": "b  a", "scope": "tools:read x"}),
            "a b",
            "tools:read x",
        ),
        (url, json!({url: ["a"], "scp": ["x", "y"]}), "a", "x y"),
        (url, json!({"scp": "x y"}), "", "x y"),
    ] {
        let (tokens, _) = trusting(&json!({"roles_claim": path}), &[signer.jwk()]);
        let caller = verify(&tokens, &signer.sign(&claims)).await.unwrap();
        let joined = |words: &BTreeSet<String>| Vec::from_iter(words.clone()).join(" ");
        assert_eq!(joined(&caller.credential.roles), roles, "{claims}");
        assert_eq!(
            joined(caller.credential.scopes.as_ref().unwrap()),
            scopes,
            "{claims}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_verified_token_is_remembered_for_five_minutes_at_most() {
    let signer = Signer::new("ES256");
    let (tokens, _) = trusting(&json!({}), &[signer.jwk()]);
    for (exp, kept, then) in [(3000, 299, 2), (100, 50, 60)] {
        let token = signer.sign(&json!({"exp": seconds(exp)}));
        let first = verify(&tokens, &token).await.unwrap();
        tokio::time::advance(Duration::from_secs(kept)).await;
        let second = verify(&tokens, &token).await.unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        tokio::time::advance(Duration::from_secs(then)).await;
        let third = verify(&tokens, &token).await.unwrap();
        assert!(!Arc::ptr_eq(&first, &third));
    }
    // within the leeway it is valid, but not kept
    let late = signer.sign(&json!({"exp": seconds(-5)}));
    let twice = [
        verify(&tokens, &late).await.unwrap(),
        verify(&tokens, &late).await.unwrap(),
    ];
    assert!(!Arc::ptr_eq(&twice[0], &twice[1]));
}

proptest! {
    #[test]
    fn a_token_with_any_character_changed_is_refused(at in 0_usize..10_000, to in "[A-Za-z0-9._=-]") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let signer = Signer::new("ES256");
            let (tokens, _) = trusting(&json!({}), &[signer.jwk()]);
            let token = signer.sign(&json!({}));
            let mut changed = token.clone();
            let at = at % token.len();
            changed.replace_range(at..=at, &to);
            prop_assert_eq!(verify(&tokens, &changed).await.is_ok(), changed == token);
            Ok(())
        })?;
    }
}
