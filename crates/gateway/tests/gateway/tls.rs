//! The public listener over TLS, by HTTP/1.1 and HTTP/2.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use reqwest::Version;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::audit::records;
use crate::support::{
    CALLWARD, Gateway, answer_of, answered, ends, http_over, program, result, sample, serve, text,
    trusting, within,
};

/// A certificate, which its own key signs unless an authority does, and the key, in files.
pub(crate) struct Own {
    folder: TempDir,
    cert: CertificateDer<'static>,
}

impl Own {
    pub(crate) fn new() -> Self {
        Self::named(&["127.0.0.1"])
    }

    pub(crate) fn named(names: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        Self::written(&made.cert, &made.signing_key)
    }

    /// One of an authority's, for the workload of this name, until a year.
    fn signed(by: &Issuer<'_, KeyPair>, name: &str, until: i32) -> Self {
        let mut params = CertificateParams::default();
        let id = format!("spiffe://test/{name}").try_into().unwrap();
        params.subject_alt_names = vec![SanType::URI(id)];
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        Self::written(&params.signed_by(&key, by).unwrap(), &key)
    }

    fn written(cert: &rcgen::Certificate, key: &KeyPair) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        let cert = cert.der().clone();
        Self { folder, cert }
    }

    /// The config of a gateway that has it, and these keys of `[http]`.
    pub(crate) fn config(&self, http: &str) -> String {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        format!(
            "[http]\n{http}\ntls_cert = {cert:?}\ntls_key = {key:?}\n{}",
            sample("orders")
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
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
    let asked = ends(&["servers", "--url", &gateway.public("")]).await;
    let said = text(&asked.stderr);
    assert!(
        said.contains("is not trusted: invalid peer certificate"),
        "{said}"
    );
    gateway.stopped().await;
}

#[tokio::test]
async fn a_client_is_who_its_certificate_names() {
    let (own, folder, key) = (
        Own::new(),
        tempfile::tempdir().unwrap(),
        KeyPair::generate(),
    );
    let (params, key) = (CertificateParams::default(), key.unwrap());
    let [ca, log] = ["ca.pem", "audit.jsonl"].map(|name| folder.path().join(name));
    std::fs::write(&ca, params.self_signed(&key).unwrap().pem()).unwrap();
    let authority = Issuer::new(params, key);
    let settings = format!(
        "[cache]\nfreshness = \"fixed\"\n[audit]\nrecord = \"all\"\npath = {log:?}\n\
         open_world_path = {log:?}\n"
    );
    let (mut command, file) = serve(&(own.config(&format!("client_ca = {ca:?}")) + &settings));
    command.env("CALLWARD_LOG", "debug");
    let mut gateway = Gateway::starting(command, Some(file), None).await;
    let client = |certificate| http_over(own.client("h2", certificate));
    let [a, b] = ["a", "b"].map(|name| Own::signed(&authority, name, 4096));
    for client in [client(Some(&a)), client(Some(&a)), client(Some(&b))] {
        gateway.http = client;
        result(&gateway.order(1).await);
    }
    let with_key = gateway.modern("tools/list", json!({})).bearer_auth("cwk_a");
    assert_eq!(
        answered(with_key).await.0,
        401,
        "the first credential counts"
    );
    let expired = Own::signed(&authority, "a", 2020);
    for (certificate, why) in [
        (None, "peer sent no certificates"),
        // its issuer is called as the authority is, and has another key
        (Some(&Own::new()), "invalid peer certificate"),
        (Some(&expired), "certificate expired"),
    ] {
        let refused = client(certificate).get(gateway.public("/healthz")).send();
        assert!(refused.await.is_err(), "{why}");
        gateway.says(why).await;
    }
    gateway.stopped().await;
    let calls = records(&log, "call");
    let calls = calls.iter().map(|call| {
        let principal = call["principal"].as_str().unwrap();
        let (issuer, name) = principal.split_once('#').unwrap();
        assert!(issuer.starts_with("certificate:"), "{issuer}");
        assert_eq!(call["credential"], json!({"kind": "certificate"}));
        (name.to_owned(), call["cache"].clone())
    });
    let expected = [("a", "miss"), ("a", "hit"), ("b", "miss")];
    let expected = expected.map(|(name, cache)| (format!("spiffe://test/{name}"), json!(cache)));
    assert_eq!(calls.collect::<Vec<_>>(), expected);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

#[tokio::test]
async fn floods_of_frames_end_their_connection_and_no_other() {
    let own = Own::new();
    let client = http_over(own.client("h2", None));
    let gateway = Gateway::trusted(&own.config(""), client).await;
    let connector = TlsConnector::from(Arc::new(own.client("h2", None)));
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let resets = (1..2000).step_by(2).flat_map(|stream| {
        // GET https://127.0.0.1/, whole; and its reset
        let get = frame(1, 0x5, stream, b"\x82\x87\x84\x41\x09127.0.0.1");
        [get, frame(3, 0, stream, &[0, 0, 0, 8])].concat()
    });
    let many = |frame: Vec<u8>| frame.repeat(5000);
    for (what, flood) in [
        ("resets", resets.collect()),
        ("pings", many(frame(6, 0, 0, b"anything"))),
        ("settings", many(frame(4, 0, 0, &[]))),
        ("windows", many(frame(8, 0, 0, &[0, 0, 0, 1]))),
        ("priorities", many(frame(2, 0, 1, &[0, 0, 0, 3, 9]))),
        ("unknown frames", many(frame(99, 0, 0, &[]))),
    ] {
        let address = gateway.public("").replace("https://", "");
        let stream = TcpStream::connect(address).await.unwrap();
        let mut stream = connector.connect(name.clone(), stream).await.unwrap();
        const PING: &[u8] = b"are you?";
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let settings = frame(4, 0, 0, &[]);
        let sent = [preface, settings, flood, frame(6, 0, 0, PING)].concat();
        let (mut reading, mut writing) = tokio::io::split(&mut stream);
        let mut read = Vec::new();
        // it may be closed already, and answers to a flood have to be read
        let _ = within("its end", async {
            tokio::join!(writing.write_all(&sent), reading.read_to_end(&mut read))
        })
        .await;
        let is_ended = !read.windows(PING.len()).any(|bytes| bytes == PING);
        assert!(is_ended, "it answers what comes after the {what}");
        result(&gateway.order(1).await);
    }
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

#[tokio::test]
async fn the_commands_of_the_readme_serve_a_team() {
    let readme = include_str!("../../../../README.md");
    let (_, team) = readme.split_once("## For a team\n\n```sh\n").unwrap();
    let (commands, _) = team.split_once("```").unwrap();
    let lines = commands.trim().lines().count();
    assert!(commands.starts_with("openssl") && lines <= 10, "{commands}");
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: openssl is not installed");
        return;
    }
    let commands = commands.replace(":7443\"", ":0\"").replace(
        "callward serve ",
        "echo $KEY > key; exec callward serve --json ",
    );
    let folder = tempfile::tempdir().unwrap();
    let mut shell = program("bash", &["-euc", &commands]);
    let binaries = Path::new(CALLWARD).parent().unwrap().display();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap());
    shell.env("PATH", path).current_dir(&folder);
    let mut gateway = Gateway::starting(shell, None, None).await;
    let mut roots = RootCertStore::empty();
    let cert = CertificateDer::from_pem_file(folder.path().join("tls.crt"));
    roots.add(cert.unwrap()).unwrap();
    gateway.url = gateway.url.replace("0.0.0.0", "localhost");
    gateway.http = http_over(trusting(roots).with_no_client_auth());
    let list = || gateway.modern("tools/list", json!({}));
    assert_eq!(answered(list()).await.0, 401);
    let key = std::fs::read_to_string(folder.path().join("key")).unwrap();
    let (status, body) = answered(list().bearer_auth(key.trim())).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("get_order"), "{body}");
    gateway.stopped().await;
}
