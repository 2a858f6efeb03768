//! An issuer whose tokens are signed here, and whose answers are scripted.

mod issuers;
mod jwts;
mod opaque;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callward_core::{BoxFuture, Caller};
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::*;
use serde_json::{Value, json};

use super::http::{Ask, Http};
use super::{IssuerConfig, Tokens, now};
use crate::{Authenticated, Reason, Refusal, VerifyToken};

const ISSUER: &str = "https://id.example/realms/main";
const JWKS: &str = "https://id.example/keys";
const AUDIENCE: &str = "https://gw.example/mcp";

enum Pair {
    Rsa(&'static dyn RsaEncoding),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// A key of the issuer. All RSA keys are the same, as ring generates none.
struct Signer {
    algorithm: &'static str,
    pair: Pair,
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa() -> RsaKeyPair {
    RsaKeyPair::from_der(include_bytes!("rsa.der")).unwrap()
}

impl Signer {
    fn new(algorithm: &'static str) -> Self {
        let random = SystemRandom::new();
        let ec = |scheme| {
            let key = EcdsaKeyPair::generate_pkcs8(scheme, &random).unwrap();
            Pair::Ec(EcdsaKeyPair::from_pkcs8(scheme, key.as_ref(), &random).unwrap())
        };
        let pair = match algorithm {
            "RS256" => Pair::Rsa(&RSA_PKCS1_SHA256),
            "RS384" => Pair::Rsa(&RSA_PKCS1_SHA384),
            "RS512" => Pair::Rsa(&RSA_PKCS1_SHA512),
            "PS256" => Pair::Rsa(&RSA_PSS_SHA256),
            "PS384" => Pair::Rsa(&RSA_PSS_SHA384),
            "PS512" => Pair::Rsa(&RSA_PSS_SHA512),
            "ES256" => ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            "ES384" => ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            _ => {
                let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Pair::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
            }
        };
        Self { algorithm, pair }
    }

    /// The public key, named after its algorithm.
    fn jwk(&self) -> Value {
        let point = |pair: &EcdsaKeyPair, crv: &str| {
            let (x, y) =
                pair.public_key().as_ref()[1..].split_at((crv[2..].parse::<usize>()).unwrap() / 8);
            json!({"kty": "EC", "crv": crv, "x": base64(x), "y": base64(y)})
        };
        let mut key = match &self.pair {
            Pair::Rsa(_) => {
                let mut key = PublicKeyComponents::<Vec<u8>>::from(rsa().public());
                if self.algorithm == "RS384" {
                    // not as the standard has it, but as some issuers do
                    key.n.insert(0, 0);
                }
                json!({"kty": "RSA", "n": base64(key.n), "e": base64(key.e)})
            }
            Pair::Ec(pair) if self.algorithm == "ES256" => point(pair, "P-256"),
            Pair::Ec(pair) => point(pair, "P-384"),
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64(pair.public_key())})
            }
        };
        key["kid"] = json!(self.algorithm);
        key
    }

    /// Signs any two texts.
    fn sign_texts(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", base64(header), base64(claims));
        let (message, random) = (signed.as_bytes(), SystemRandom::new());
        let signature = match &self.pair {
            Pair::Rsa(scheme) => {
                let mut signature = vec![0; rsa().public().modulus_len()];
                rsa()
                    .sign(*scheme, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Pair::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        };
        format!("{signed}.{}", base64(signature))
    }

    /// Signs claims on top of valid ones; those that are `null` are left out.
    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm, "kid": self.algorithm});
        self.sign_texts(&header.to_string(), &with(claims).to_string())
    }
}

/// Valid claims, with some replaced.
fn with(claims: &Value) -> Value {
    let mut all = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": seconds(300)});
    let members = all.as_object_mut().unwrap();
    members.extend(claims.as_object().unwrap().clone());
    members.retain(|_, value| !value.is_null());
    all
}

/// A time this number of seconds from now.
fn seconds(from_now: i64) -> i64 {
    let now = now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() + from_now
}

/// Answers at addresses, after a delay; other addresses do not exist.
#[derive(Default)]
struct Script {
    answers: Mutex<HashMap<String, String>>,
    delay: Mutex<Duration>,
    asked: Mutex<Vec<Ask>>,
}

impl Script {
    fn answers(&self, url: &str, body: &impl ToString) {
        self.answers.lock().insert(url.to_owned(), body.to_string());
    }

    /// How many requests there were.
    fn count(&self) -> usize {
        self.asked.lock().len()
    }
}

struct Scripted(Arc<Script>);

impl Http for Scripted {
    fn send(&self, ask: Ask) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        let answer = self.0.answers.lock().get(ask.url.as_str()).cloned();
        let delay = *self.0.delay.lock();
        self.0.asked.lock().push(ask);
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            answer
                .map(String::into_bytes)
                .ok_or_else(|| "it answered 404".to_owned())
        })
    }
}

/// A valid config, with members replaced.
fn config(members: &Value) -> IssuerConfig {
    let mut all = json!({"issuer": ISSUER, "audience": [AUDIENCE], "jwks_url": JWKS});
    all.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

/// Trusts one issuer with these keys.
fn trusting(members: &Value, keys: &[Value]) -> (Tokens, Arc<Script>) {
    let script = Arc::new(Script::default());
    script.answers(JWKS, &json!({"keys": keys}));
    let http = Arc::new(Scripted(script.clone()));
    (Tokens::with(vec![config(members)], http).unwrap(), script)
}

async fn verify(tokens: &Tokens, token: &str) -> Result<Arc<Caller>, Refusal> {
    verify_from(tokens, token, None).await
}

async fn verify_from(
    tokens: &Tokens,
    token: &str,
    peer: Option<IpAddr>,
) -> Result<Arc<Caller>, Refusal> {
    match tokens.verify(token, peer) {
        Authenticated::Now(result) => result,
        Authenticated::Later(result) => result.await,
    }
}

async fn reason(tokens: &Tokens, token: &str) -> Reason {
    verify(tokens, token).await.unwrap_err().reason
}
