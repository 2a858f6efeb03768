//! The public listener over TLS, by HTTP/1.1 and HTTP/2.

use std::sync::Arc;

use reqwest::Version;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{Gateway, answer_of, http_over, result, sample, trusting, within};

/// A certificate that its own key signs, and the key, in files.
pub(crate) struct Own {
    folder: TempDir,
    cert: CertificateDer<'static>,
}

impl Own {
    pub(crate) fn new() -> Self {
        let names = ["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        std::fs::write(folder.path().join("key.pem"), key).unwrap();
        let cert = made.cert.der().clone();
        Self { folder, cert }
    }

    /// The config of a gateway that has it, and these keys of `[http]`.
    pub(crate) fn config(&self, http: &str) -> String {
        let path = |name| self.folder.path().join(name);
        let (cert, key) = (path("cert.pem"), path("key.pem"));
        format!(
            "[http]\n{http}\ntls_cert = {cert:?}\ntls_key = {key:?}\n{}",
            sample("orders")
        )
    }

    /// A client that trusts it, speaks this protocol, and shows a certificate if it has one.
    pub(crate) fn client(&self, protocol: &str, own: Option<&Self>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.cert.clone()).unwrap();
        let mut config = match own {
            None => trusting(roots).with_no_client_auth(),
            Some(own) => {
                let key = own.folder.path().join("key.pem");
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                let chain = vec![own.cert.clone()];
                trusting(roots).with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.into()];
        config
    }
}

#[tokio::test]
async fn tools_are_listed_over_both_protocols_to_who_trusts_the_certificate() {
    let own = Own::new();
    let clients = ["http/1.1", "h2"].map(|protocol| http_over(own.client(protocol, None)));
    let mut gateway = Gateway::trusted(&own.config(""), clients[0].clone()).await;
    assert!(gateway.url.starts_with("https://"), "{}", gateway.url);
    gateway
        .says("every user of this machine may read the key")
        .await;
    for (client, version) in clients.iter().zip([Version::HTTP_11, Version::HTTP_2]) {
        let listing = gateway.modern("tools/list", json!({})).build();
        let answer = client.execute(listing.unwrap()).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        let answer = answer_of(&answer.text().await.unwrap());
        assert_ne!(result(&answer)["tools"], json!([]));
    }
    let stranger = http_over(Own::new().client("h2", None));
    let refused = stranger.get(gateway.public("/healthz")).send().await;
    assert!(refused.unwrap_err().is_connect());
    gateway.stopped().await;
}

#[tokio::test]
async fn a_client_without_the_certificate_that_is_required_is_refused() {
    let (own, known) = (Own::new(), Own::new());
    let ca = known.folder.path().join("cert.pem");
    let config = own.config(&format!("client_ca = {ca:?}"));
    let client = http_over(own.client("h2", Some(&known)));
    let gateway = Gateway::trusted(&config, client).await;
    result(&gateway.order(1).await);
    for other in [None, Some(&Own::new())] {
        let client = http_over(own.client("h2", other));
        assert!(client.get(gateway.public("/healthz")).send().await.is_err());
    }
    gateway.stopped().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

#[tokio::test]
async fn rapid_resets_end_their_connection_and_no_other() {
    let own = Own::new();
    let client = http_over(own.client("h2", None));
    let gateway = Gateway::trusted(&own.config(""), client).await;
    result(&gateway.order(1).await);
    let address = gateway.public("").replace("https://", "");
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(own.client("h2", None)));
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend(frame(4, 0, 0, &[]));
    for stream in (1..2000).step_by(2) {
        // GET https://127.0.0.1/, whole; and its reset
        sent.extend(frame(1, 0x5, stream, b"\x82\x87\x84\x41\x09127.0.0.1"));
        sent.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    const PING: &[u8] = b"are you?";
    sent.extend(frame(6, 0, 0, PING));
    // it may be closed already
    let _ = stream.write_all(&sent).await;
    let mut read = Vec::new();
    let _ = within("its end", stream.read_to_end(&mut read)).await;
    let is_ended = !read.windows(PING.len()).any(|bytes| bytes == PING);
    assert!(is_ended, "it answers what comes after the resets");
    result(&gateway.order(2).await);
    gateway.stopped().await;
}

#[tokio::test]
async fn a_signal_to_end_lets_a_call_over_http_2_finish() {
    let own = Own::new();
    let client = http_over(own.client("h2", None));
    let gateway = Gateway::trusted(&own.config("drain = \"10s\""), client).await;
    let report = json!({"region": "x", "delay_ms": 1_000});
    let slow = gateway.begin("orders__sales_report", &report);
    gateway.running("orders", 1).await;
    gateway.signal("-TERM").await;
    let (_, answer) = within("the answer", slow).await.unwrap();
    let answer = answer_of(&answer);
    assert_eq!(result(&answer)["structuredContent"]["region"], "x");
    let (well, said) = gateway.ended().await;
    assert!(well && said.contains("no call was cut off"), "{said}");
}
