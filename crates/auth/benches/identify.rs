//! What it costs to identify the sender of a request, beside not asking for a credential.
//!
//! `cargo bench -p callward-auth --all-features --bench identify` prints a table. The rows take
//! turns; shown are the median round and its difference to the first row. A *new* token is one
//! that was never seen: its signature is verified. The issuer's keys are fetched before.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark reads the real clock, prints, and may stop at any failure"
)]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callward_auth::keys::{KeyFile, Keys, NewKey};
use callward_auth::tokens::{IssuerConfig, Tokens};
use callward_auth::{Authenticated, Authenticator, Sender};
use callward_core::{Caller, Principal};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Uri};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

const ROUNDS: usize = 41;
const REQUESTS: usize = 256;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Serves the public key of a pair for as long as the process runs.
fn serve_keys(pair: &EcdsaKeyPair) -> String {
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": encode(x), "y": encode(y)});
    let body = json!({"keys": [key]}).to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, length) = (stream.unwrap(), body.len());
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        }
    });
    url
}

/// Signs a token that differs from all others by `number`.
fn token(pair: &EcdsaKeyPair, number: usize) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let header = json!({"alg": "ES256", "kid": "k"}).to_string();
    let claims = json!({
        "iss": "http://127.0.0.1", "aud": "https://gw.example/mcp", "sub": "ada", "jti": number,
        "scope": "tools:read tools:write", "exp": now.as_secs() + 3600,
    });
    let signed = format!("{}.{}", encode(header), encode(claims.to_string()));
    let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
    format!("{signed}.{}", encode(signature))
}

fn with(credential: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {credential}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

async fn identify(by: &Authenticator, headers: &HeaderMap, uri: &Uri) -> Arc<Caller> {
    let sender = Sender {
        headers,
        uri,
        peer: None,
        certificate: None,
    };
    match by.authenticate(sender) {
        Authenticated::Now(found) => found.unwrap(),
        Authenticated::Later(found) => found.await.unwrap(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let random = SystemRandom::new();
    let scheme = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair = EcdsaKeyPair::generate_pkcs8(scheme, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(scheme, pair.as_ref(), &random).unwrap();
    let issuer: IssuerConfig = serde_json::from_value(json!({
        "issuer": "http://127.0.0.1", "audience": ["https://gw.example/mcp"],
        "jwks_url": serve_keys(&pair),
    }))
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = KeyFile::new(directory.path().join("keys.json"));
    let mut new = NewKey::default();
    new.name = "ada".to_owned();
    let (key, _) = file.create(new, SystemTime::now()).unwrap();
    let mut by = Authenticator::default();
    by.keys = Some(Arc::new(Keys::open(file).unwrap()));
    by.tokens = Some(Arc::new(Tokens::new(vec![issuer]).unwrap()));
    let uri = Uri::from_static("/mcp");
    let anonymous = Arc::new(Caller::new(Principal::new("local")));
    let (key, known) = (with(key.expose()), with(&token(&pair, usize::MAX)));
    identify(&by, &known, &uri).await;

    let mut rows =
        ["no credential", "API key", "known JWT", "new ES256 JWT"].map(|row| (row, vec![]));
    for round in 0..ROUNDS {
        let new = (0..REQUESTS).map(|request| with(&token(&pair, round * REQUESTS + request)));
        let new: Vec<_> = new.collect();
        for (row, (_, times)) in rows.iter_mut().enumerate() {
            let start = Instant::now();
            for new in &new {
                black_box(match row {
                    0 => anonymous.clone(),
                    1 => identify(&by, &key, &uri).await,
                    2 => identify(&by, &known, &uri).await,
                    _ => identify(&by, new, &uri).await,
                });
            }
            times.push(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
        }
    }
    println!("| credential | median, ns a request | beside none |\n| --- | ---: | ---: |");
    let mut none = 0.0;
    for (row, mut times) in rows {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        if row == "no credential" {
            none = median;
        }
        println!("| {row} | {median:.0} | {:.0} |", median - none);
    }
}
