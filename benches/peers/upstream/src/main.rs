//! `upstream [ADDRESS]`: MCP servers made with rmcp, on two threads.
//!
//! `/mcp` is the server that is measured, without sessions, answering in JSON. `/other/mcp` is a
//! second one over the same items, and `/session/mcp` one with sessions and state of its own for
//! each. `/control/` is for the measurement: `GET counts`, `POST reset`, `POST faults`, `POST
//! items`.

mod control;
mod server;

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use peers_upstream::{Dropped, Fault, Server, State, Verdict};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Tools;

type Body = BoxBody<Bytes, Infallible>;
type Mcp = StreamableHttpService<Tools, NeverSessionManager>;

/// All that is served.
#[derive(Clone)]
struct Servers {
    main: Mcp,
    other: Mcp,
    sessions: StreamableHttpService<Tools, LocalSessionManager>,
    state: Arc<State>,
}

impl Servers {
    fn new() -> Self {
        let state = Arc::new(State::default());
        let stateless = |server| {
            let tools = Tools::new(server, Arc::clone(&state));
            let config = StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(true);
            Mcp::new(move || Ok(tools.clone()), Arc::default(), config)
        };
        Self {
            main: stateless(Server::Main),
            other: stateless(Server::Other),
            sessions: StreamableHttpService::new(
                || Ok(Tools::new(Server::Sessions, Arc::default())),
                Arc::default(),
                StreamableHttpServerConfig::default(),
            ),
            state,
        }
    }

    /// Refuses the revision without sessions, as a server that keeps state in them does.
    async fn in_session(&self, request: Request<Incoming>) -> Response<Body> {
        match request.headers().get("mcp-protocol-version") {
            Some(version) if version == "2026-07-28" => {
                text(StatusCode::BAD_REQUEST, "unsupported protocol version")
            }
            _ => self.sessions.handle(request).await,
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7500".to_owned());
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(serve(&address))
}

async fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let servers = Servers::new();
    let listener = TcpListener::bind(address).await?;
    loop {
        // a client that is gone before it is accepted does not end the server
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, servers.clone()));
        }
    }
}

async fn connection(stream: TcpStream, servers: Servers) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, servers.clone()));
    // An error is a client that left, or a connection dropped on purpose: both end it.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    mut request: Request<Incoming>,
    servers: Servers,
) -> Result<Response<Body>, Dropped> {
    match request.uri().path() {
        path if path.starts_with("/control/") => {
            return Ok(control::answer(request, &servers.state).await);
        }
        "/other/mcp" => return Ok(servers.other.handle(request).await),
        "/session/mcp" => return Ok(servers.in_session(request).await),
        _ if !servers.state.faults.any() => return Ok(servers.main.handle(request).await),
        _ => {}
    }
    let verdict = Verdict::default();
    request.extensions_mut().insert(verdict.clone());
    let response = servers.main.handle(request).await;
    match verdict.get() {
        Fault::Drop => Err(Dropped),
        Fault::Unavailable => Ok(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "failed as instructed",
        )),
        Fault::None | Fault::Rpc | Fault::Result => Ok(response),
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = status;
    response
}
