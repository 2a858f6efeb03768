//! What fails before the server can have run the call.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use callward_core::{List, ServerEvent, ToolServer};
use callward_mcp::client::{CommandSpec, EraChoice, HttpSpec, Target, Upstream};
use futures_util::StreamExt;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::{assert_documented, first_call};
use crate::instances;
use crate::script::{LEGACY, LONG, call, calling, greeted, greeting, shell, start};
use crate::script_http::{Exchange, Server, legacy as legacy_http};

const CONNECT: Duration = Duration::from_secs(30);

fn at(url: &str, connect_timeout: Duration) -> Upstream {
    start(Target::Http(HttpSpec::new(url).unwrap()), |options| {
        (options.era, options.connect_timeout) = (EraChoice::Legacy, connect_timeout);
    })
}

#[tokio::test]
async fn a_refused_connection_is_an_unsent_call() {
    let error = first_call(&at("http://no-such-host.invalid/mcp", CONNECT)).await;
    assert_documented("the host has no address", &error);

    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = first_call(&at(&format!("http://{free}/mcp"), CONNECT)).await;
    assert_documented("the connection is refused", &error);
}

/// Serves every connection on a thread, for as long as the test runs.
fn serve(each: impl Fn(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(each));
    address
}

#[tokio::test]
async fn the_connection_cannot_be_secured() {
    // self-signed, so no authority vouches for it; made for this test only
    let certificate = CertificateDer::from_pem_slice(include_bytes!("../tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../tls/key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let unknown = serve(move |mut stream| {
        let mut connection = ServerConnection::new(config.clone()).unwrap();
        let _ = connection.complete_io(&mut stream);
    });
    let plain = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let closes = serve(drop);
    for address in [unknown, plain, closes] {
        let upstream = at(
            &format!("https://localhost:{}/mcp", address.port()),
            CONNECT,
        );
        assert_documented("TLS fails", &first_call(&upstream).await);
    }

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", silent.local_addr().unwrap());
    let upstream = at(&url, Duration::from_millis(50));
    let error = first_call(&upstream).await;
    assert_documented("no connection, or no greeting, within", &error);
}

#[tokio::test]
async fn the_greeting_fails() {
    for (status, row) in [
        (401, "the greeting is refused with HTTP 401"),
        (403, "the greeting is refused with HTTP 401"),
        (429, "the greeting is put off"),
        (404, "the greeting fails otherwise"),
        (500, "the greeting fails otherwise"),
        (503, "the greeting fails otherwise"),
    ] {
        let mut server = Server::start().await;
        let upstream = server.upstream(LEGACY);
        let refusing = tokio::spawn(async move {
            loop {
                let asked = server.either().await;
                asked.answer(status, "retry-after: 7\r\n", "").await;
            }
        });
        let error = first_call(&upstream).await;
        assert_documented(row, &error);
        assert_eq!(error.code, Some(i64::from(status)));
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        refusing.abort();
    }
    for (status, row) in [
        (401, "the greeting is refused with HTTP 401"),
        (429, "the greeting is put off"),
        (200, "the greeting fails otherwise"),
    ] {
        // one that comes with a call, as the session before it was lost
        let (upstream, mut server) = legacy_http("one").await;
        let lost = async |asked: Exchange| asked.answer(404, "", "").await;
        server.fail_once(&upstream, lost).await;
        let running = calling(&upstream, call("x", "{}"));
        let hello = server.asked("initialize").await;
        hello.answer(status, "", "").await;
        assert_documented(row, &running.await.unwrap().unwrap_err());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn no_child_is_there() {
    let none = Target::Command(CommandSpec::new("/no/such/program"));
    let upstream = start(none, |_| {});
    let error = upstream.list_tools().await.unwrap_err();
    assert_documented("a child cannot be started", &error);
    assert!(error.message.contains("/no/such/program"), "{error}");

    upstream.shutdown().await;
    assert_documented("the upstream was shut down", &first_call(&upstream).await);

    // it says so when its input is closed, and lives on
    let script = greeting(
        "exec <&-; echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}'; \
         exec sleep 60",
    );
    let upstream = shell(&script, |_| {});
    let mut events = upstream.events().unwrap();
    while events.next().await != Some(ServerEvent::ListChanged(List::Tools)) {}
    assert_documented("a child has closed its input", &first_call(&upstream).await);
}

#[tokio::test(start_paused = true)]
async fn all_instances_belong_to_others() {
    let (upstream, mut peer, _script) = greeted(1 << 16, |options| options.max_instances = 1).await;
    let owned = |session| instances::call(&instances::caller("ada", session), false);
    peer.serve(&upstream, owned("1")).await;
    let error = upstream.call(owned("2")).await.unwrap_err();
    assert_documented("all of [`max_instances`]", &error);
}

#[tokio::test]
async fn all_connections_are_in_use() {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| {
        (options.era, options.max_connections) = (EraChoice::Legacy, 1);
        options.connect_timeout = Duration::from_millis(100);
    });
    server.initialize("s").await;
    upstream.ready(LONG).await.unwrap();
    let _the_one_connection = server.stream().await;
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_documented("HTTP: all of [`max_connections`]", &error);
}
