//! Connections over TLS, on real sockets and a clock that is paused.

use std::path::Path;

use axum::serve::ListenerExt;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use std::io;

use super::*;

/// A certificate that its own key signs, and the key.
struct Own {
    cert: String,
    key: String,
}

impl Own {
    fn new(name: &str) -> Self {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        let id = format!("spiffe://test/{name}").try_into().unwrap();
        params.subject_alt_names.push(rcgen::SanType::URI(id));
        let key = rcgen::KeyPair::generate().unwrap();
        Self {
            cert: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    fn write(&self, folder: &Path) {
        std::fs::write(folder.join("cert.pem"), &self.cert).unwrap();
        std::fs::write(folder.join("key.pem"), &self.key).unwrap();
    }

    fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap()
    }
}

/// Serves the name in a client's certificate, with the files in a folder.
async fn serving(folder: &TempDir, client_ca: Option<&Own>) -> (SocketAddr, CancellationToken) {
    let path = |name| Some(folder.path().join(name));
    let mut files = TlsFiles {
        tls_cert: path("cert.pem"),
        tls_key: path("key.pem"),
        client_ca: None,
    };
    if let Some(own) = client_ca {
        std::fs::write(folder.path().join("ca.pem"), &own.cert).unwrap();
        files.client_ca = path("ca.pem");
    }
    let tls = Tls::open(&files).unwrap().unwrap();
    tokio::spawn(tls.clone().watch());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let routes = tower::service_fn(async |request: Request| {
        let shown = request.extensions().get::<Arc<PeerCertificate>>();
        let principal = shown.map(|shown| shown.0.as_ref().unwrap().principal.to_string());
        let shown = principal.map(|name| name.split_once('#').unwrap().1.to_owned());
        let shown = shown.unwrap_or_default();
        Ok::<_, Infallible>(Response::new(Body::from(shown + "|")))
    });
    let (listener, limits) = (listener.tap_io(prepare), ConnectionLimits::default());
    tokio::spawn(serve(
        listener,
        Some,
        routes,
        limits,
        Some(tls),
        stop.clone(),
    ));
    (address, stop)
}

/// Connects as a client that trusts one certificate, and shows its own if it has one.
async fn connected(
    address: SocketAddr,
    trusted: &Own,
    own: Option<&Own>,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![own.der()], key).unwrap()
        }
    };
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Sends a request over HTTP/1.1, and returns the body of its answer.
async fn asked(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await?;
    let mut read = Vec::new();
    while !read.ends_with(b"|") {
        if stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let read = String::from_utf8(read).unwrap();
    Ok(read.rsplit("\r\n\r\n").next().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_never_ends_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    Own::new("localhost").write(folder.path());
    let (address, _stop) = serving(&folder, None).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let began = Instant::now();
    let read = silent.read(&mut [0; 16]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    let limits = Duration::from_secs(10)..ConnectionLimits::default().header;
    assert!(limits.contains(&began.elapsed()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_replaced_certificate_is_used_for_new_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Own::new("localhost"), Own::new("localhost"));
    old.write(folder.path());
    let (address, _stop) = serving(&folder, None).await;
    let mut open = connected(address, &old, None).await.unwrap();
    assert_eq!(asked(&mut open).await.unwrap(), "|");
    let long_enough = Duration::from_secs(7);
    // a key without its certificate
    std::fs::write(folder.path().join("key.pem"), &new.key).unwrap();
    sleep(long_enough).await;
    connected(address, &old, None).await.unwrap();
    new.write(folder.path());
    sleep(long_enough).await;
    let mut with_new = connected(address, &new, None).await.unwrap();
    assert!(connected(address, &old, None).await.is_err());
    for stream in [&mut open, &mut with_new] {
        assert_eq!(asked(stream).await.unwrap(), "|");
    }
}

#[tokio::test]
async fn requests_carry_the_certificate_of_their_client() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = (Own::new("localhost"), Own::new("agent"));
    server.write(folder.path());
    let (address, _stop) = serving(&folder, Some(&client)).await;
    let mut stream = connected(address, &server, Some(&client)).await.unwrap();
    assert_eq!(asked(&mut stream).await.unwrap(), "spiffe://test/agent|");
    for refused in [None, Some(&Own::new("agent"))] {
        let tried = async { asked(&mut connected(address, &server, refused).await?).await };
        assert!(tried.await.is_err());
    }
}

#[test]
fn the_authority_of_http_2_is_checked_as_a_host() {
    for (given, expected) in [
        (vec![], vec!["a:1"]),
        (vec!["a:1"], vec!["a:1"]),
        (vec!["b"], vec!["b", "a:1"]),
    ] {
        let mut request = http::Request::get("https://a:1/mcp?x").body(()).unwrap();
        for host in given {
            request
                .headers_mut()
                .append(HOST, HeaderValue::from_static(host));
        }
        to_origin_form(&mut request);
        assert_eq!(request.uri(), "/mcp?x");
        let hosts: Vec<_> = request.headers().get_all(HOST).iter().collect();
        assert_eq!(hosts, expected);
    }
}
