//! What fails before the server can have run the call.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use callward_core::{ErrorKind, ToolServer};
use callward_mcp::client::{CommandSpec, EraChoice, Target, Upstream};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::{assert_documented, at, first_call};
use crate::boundary::socket::{End, Fault, Server as FaultyServer};
use crate::instances;
use crate::script::{INITIALIZED, LONG, call, calling, greeted, id, scripted};
use crate::script_http::{Server, legacy as legacy_http};

#[tokio::test]
async fn nobody_is_there() {
    let error = first_call(&at("http://no-such-host.invalid/mcp").start()).await;
    assert_documented("the host has no address", &error);

    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = first_call(&at(&format!("http://{free}/mcp")).start()).await;
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
        let upstream = at(&format!("https://localhost:{}/mcp", address.port())).start();
        assert_documented("TLS fails", &first_call(&upstream).await);
    }

    // it listens, and says nothing
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", silent.local_addr().unwrap());
    let upstream = at(&url).connect_timeout(Duration::from_millis(50)).start();
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
        let upstream = server.upstream().era(EraChoice::Legacy).start();
        let refusing = tokio::spawn(async move {
            loop {
                let asked = server.next().await;
                asked.answer(status, "retry-after: 7\r\n", "").await;
            }
        });
        let error = first_call(&upstream).await;
        assert_documented(row, &error);
        assert_eq!(error.code(), Some(i64::from(status)));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        refusing.abort();
    }
    for (status, row) in [
        (401, "the greeting is refused with HTTP 401"),
        (429, "the greeting is put off"),
        (200, "the greeting fails otherwise"),
    ] {
        assert_documented(row, &refused(status).await);
    }
}

/// Refuses a greeting that comes with the call: the session before it was lost.
async fn refused(status: u16) -> callward_core::ToolError {
    let (upstream, mut server) = legacy_http("one").await;
    let running = calling(&upstream, call("x", "{}"));
    server.asked("tools/call").await.answer(404, "", "").await;
    running.await.unwrap().unwrap_err();
    let running = calling(&upstream, call("x", "{}"));
    let hello = server.asked("initialize").await;
    hello.answer(status, "", "").await;
    running.await.unwrap().unwrap_err()
}

#[cfg(unix)]
#[tokio::test]
async fn no_child_is_there() {
    let none = Target::Command(CommandSpec::new("/no/such/program"));
    let upstream = Upstream::builder(id(), none).start();
    upstream.ready(Duration::from_millis(1)).await.unwrap_err();
    let error = first_call(&upstream).await;
    assert_documented("a child cannot be started", &error);

    upstream.shutdown().await;
    assert_documented("the upstream was shut down", &first_call(&upstream).await);

    // it says so when its input is closed, and lives on
    let script = format!(
        "read hello; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{INITIALIZED}}}'; read ready; \
         exec <&-; echo '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}}'; \
         exec sleep 60"
    );
    let command = CommandSpec::new("/bin/sh").with_args(["-c", &script]);
    let upstream = Upstream::builder(id(), Target::Command(command))
        .era(EraChoice::Legacy)
        .start();
    let mut events = upstream.events().unwrap();
    while futures_util::StreamExt::next(&mut events).await
        != Some(callward_core::ServerEvent::ToolsChanged)
    {}
    assert_documented("a child has closed its input", &first_call(&upstream).await);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_call_is_still_here() {
    let (builder, script) = scripted(256);
    let (upstream, peer, _script) = greeted(builder, script).await;
    let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(40 << 20));
    let begun = calling(&upstream, call("x", &arguments));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let waiting = calling(&upstream, call("x", &arguments));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let error = upstream.call(call("x", &arguments)).await.unwrap_err();
    assert_documented("over 64 MiB wait", &error);
    drop(peer);
    let error = begun.await.unwrap().unwrap_err();
    assert_documented("a pipe breaks before it has taken", &error);
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectFailed);
}

#[tokio::test]
async fn the_end_of_the_request_is_still_here() {
    let mut server = FaultyServer::start().await;
    let upstream = server.upstream(EraChoice::Modern).await;
    let fault = Fault::Read(1000, End::Reset);
    let (ended, ..) = server.faulty(&upstream, fault, 16 << 20).await;
    assert_documented("HTTP: the connection breaks before", &ended.unwrap_err());

    let error = upstream.call(call("x", "[1]")).await.unwrap_err();
    assert_documented("the arguments are not a JSON object", &error);
}

#[tokio::test(start_paused = true)]
async fn all_instances_belong_to_others() {
    let (builder, script) = scripted(1 << 16);
    let (upstream, mut peer, _script) = greeted(builder.max_instances(1), script).await;
    let owned = |session| instances::call(&instances::caller("ada", session), false);
    peer.serve(&upstream, owned("1")).await;
    let error = upstream.call(owned("2")).await.unwrap_err();
    assert_documented("all of [`max_instances`]", &error);
}

#[tokio::test]
async fn all_connections_are_in_use() {
    let mut server = Server::start().await;
    let timeout = Duration::from_millis(100);
    let builder = server.upstream().era(EraChoice::Legacy);
    let upstream = builder.max_connections(1).connect_timeout(timeout).start();
    server.initialize("s").await;
    upstream.ready(LONG).await.unwrap();
    let _the_one_connection = server.stream().await;
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_documented("HTTP: all of [`max_connections`]", &error);
}
