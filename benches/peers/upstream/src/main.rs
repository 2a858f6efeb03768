//! `upstream [ADDRESS]`: an MCP server made with rmcp, without sessions, answering in JSON, on two threads.
//!
//! `/mcp` is the server. `/control/` is for whoever measures: `GET counts`, `POST reset`, `POST faults`.

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
use peers_upstream::{Dropped, Fault, State, Verdict};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Tools;

type Body = BoxBody<Bytes, Infallible>;
type Mcp = StreamableHttpService<Tools, NeverSessionManager>;

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
    let state = Arc::new(State::default());
    let tools = Tools::new(Arc::clone(&state));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let mcp = Mcp::new(move || Ok(tools.clone()), Arc::default(), config);
    let listener = TcpListener::bind(address).await?;
    loop {
        // a client that is gone before it is accepted is no reason to end
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, mcp.clone(), Arc::clone(&state)));
        }
    }
}

async fn connection(stream: TcpStream, mcp: Mcp, state: Arc<State>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, mcp.clone(), Arc::clone(&state)));
    // An error is a client that left, or a connection dropped on purpose: both end it.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    mut request: Request<Incoming>,
    mcp: Mcp,
    state: Arc<State>,
) -> Result<Response<Body>, Dropped> {
    if request.uri().path().starts_with("/control/") {
        return Ok(control::answer(request, &state).await);
    }
    if !state.faults.any() {
        return Ok(mcp.handle(request).await);
    }
    let verdict = Verdict::default();
    request.extensions_mut().insert(verdict.clone());
    let response = mcp.handle(request).await;
    match verdict.get() {
        Fault::Drop => Err(Dropped),
        Fault::Unavailable => Ok(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "failed, as it was told to",
        )),
        Fault::None | Fault::Rpc | Fault::Result => Ok(response),
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = status;
    response
}
