//! The HTTP listener: the MCP endpoint, and what operators ask.
//!
//! | path | what |
//! | --- | --- |
//! | `/mcp` | the endpoint for clients; Origin and Host are checked |
//! | `/healthz` | 200 as long as the process answers |
//! | `/readyz` | 200 while a server is up, else 503; the servers as JSON for known hosts |
//! | `/metrics` | Prometheus text, for known hosts |
//! | `/api/tools…` | what `tollgate call`, `tools` and `explain` ask a running gateway |
//! | `/api/cache…` | what `tollgate cache` asks it |
//! | `/api/servers…` | what `tollgate servers` asks it |
//! | `/api/routes/events` | what the router does, as it does it |
//!
//! What a server said last and how tools are named is not for web pages: a rebound name is no known
//! host.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tollgate::Stack;
use tollgate::core::BaggageFilter;
use tollgate_mcp::face;
use tollgate_mcp::upstream::Upstream;

use crate::api;
use crate::backend::StackBackend;
use crate::config::HttpConfig;
use crate::connections;
use crate::error::AppError;
use crate::inflight::Inflight;
use crate::metrics::Telemetry;
use crate::output::Screen;
use crate::record::Recorder;
use crate::report::Reports;
use crate::shutdown::{Stop, drain};

/// How long connections may take to write their last answers, once no call is in flight. Streams
/// that clients only listen on would otherwise keep the process.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// What the operator's routes read.
pub(crate) struct Operator {
    pub(crate) stack: Stack,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) calls: Inflight,
    pub(crate) recorder: Recorder,
    pub(crate) allowed_hosts: Vec<String>,
    /// What each result tells, asked or not.
    pub(crate) reports: Reports,
    /// Which baggage is passed on.
    pub(crate) baggage: BaggageFilter,
    /// Fires when the gateway is to end: streams that only tell end then.
    pub(crate) stopping: CancellationToken,
}

/// Listens.
///
/// # Errors
///
/// [`AppError`] names the address that is taken or not ours.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, AppError> {
    TcpListener::bind(address)
        .await
        .map_err(AppError::io(format!("cannot listen on {address}")))
}

/// Returns the address a listener is bound to.
///
/// # Errors
///
/// [`AppError`] if the system does not say.
pub(crate) fn bound(listener: &TcpListener) -> Result<SocketAddr, AppError> {
    listener
        .local_addr()
        .map_err(AppError::io("the listener has no address"))
}

/// Puts the gateway's routes together.
///
/// # Errors
///
/// [`AppError`] if a pattern for `Host` or `Origin` is none.
pub(crate) fn gateway(
    operator: Arc<Operator>,
    config: &HttpConfig,
    stop: &CancellationToken,
) -> Result<Router, AppError> {
    let backend = StackBackend::new(
        operator.stack.clone(),
        operator.upstreams.clone(),
        operator.calls.clone(),
        operator.recorder.clone(),
    )
    .with_reports(operator.reports)
    .with_observer(operator.telemetry.observer())
    .with_baggage(operator.baggage.clone());
    let ready = operator.clone();
    let metrics = operator.clone();
    Ok(endpoint(Arc::new(backend), config, stop)?
        .route("/healthz", get(async || "ok\n"))
        .route(
            "/readyz",
            get(async move |headers: HeaderMap| readiness(&ready, &headers)),
        )
        .route(
            "/metrics",
            get(async move |headers: HeaderMap| scrape(&metrics, &headers)),
        )
        .nest("/api", api::routes(operator)))
}

/// Returns the route of the MCP endpoint alone. Its notification streams end with `stop`.
///
/// # Errors
///
/// [`AppError`] if a pattern for `Host` or `Origin` is none.
pub(crate) fn endpoint<B: face::Backend>(
    backend: Arc<B>,
    config: &HttpConfig,
    stop: &CancellationToken,
) -> Result<Router, AppError> {
    let hosts = patterns::<face::HostPattern>(&config.allowed_hosts)?;
    let origins = patterns::<face::OriginPattern>(&config.allowed_origins)?;
    let options = face::HttpOptions::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .with_shutdown(stop.clone());
    Ok(face::router(backend, options))
}

fn patterns<P: FromStr<Err = face::InvalidOption>>(texts: &[String]) -> Result<Vec<P>, AppError> {
    let parsed: Result<_, _> = texts.iter().map(|text| text.parse()).collect();
    // a config file was checked for this already, with file and line
    parsed.map_err(|error: face::InvalidOption| AppError::Usage(error.to_string()))
}

/// Serves until asked to stop; then lets calls in flight end, within the limit.
///
/// # Errors
///
/// [`AppError`] if the listener breaks.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    calls: &Inflight,
    limit: Duration,
    stop: &Stop,
    screen: &Screen,
) -> Result<(), AppError> {
    let mut server = tokio::spawn(connections::serve(listener, routes, stop.asked().clone()));
    tokio::select! {
        // a listener without connections ends with the signal: that is still a stop
        biased;
        () = stop.asked().cancelled() => {}
        ended = &mut server => return flatten(ended),
    }
    drain(calls, limit, stop, screen).await;
    // a call that ended is not yet an answer that was written
    match tokio::time::timeout(LAST_WRITES, &mut server).await {
        Ok(ended) => flatten(ended),
        Err(_) => {
            server.abort();
            Ok(())
        }
    }
}

fn flatten(ended: Result<(), tokio::task::JoinError>) -> Result<(), AppError> {
    ended
        .map_err(std::io::Error::other)
        .map_err(AppError::io("the listener broke"))
}

#[derive(Serialize)]
struct Readiness {
    tollgate: &'static str,
    ready: bool,
    tools: usize,
    /// Absent for hosts that are not known: probes need the status only.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<Vec<ServerView>>,
}

#[derive(Serialize)]
struct ServerView {
    id: String,
    set: String,
    up: bool,
    tools: usize,
    error: Option<String>,
}

fn readiness(operator: &Operator, headers: &HeaderMap) -> Response {
    let stack = &operator.stack;
    let server = |status: tollgate::ServerStatus| ServerView {
        id: status.id.to_string(),
        set: status.set.to_string(),
        up: status.up,
        tools: status.tools,
        error: status.last_error,
    };
    let servers: Vec<_> = stack.servers().into_iter().map(server).collect();
    let ready = servers.iter().any(|server| server.up);
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json(
        status,
        &Readiness {
            tollgate: env!("CARGO_PKG_VERSION"),
            ready,
            tools: stack.catalogue().entries().len(),
            servers: api::refused(headers, &operator.allowed_hosts)
                .is_none()
                .then_some(servers),
        },
    )
}

fn scrape(operator: &Operator, headers: &HeaderMap) -> Response {
    if let Some(why) = api::refused(headers, &operator.allowed_hosts) {
        return json(StatusCode::FORBIDDEN, &why);
    }
    match operator.telemetry.text() {
        Ok(text) => answer(StatusCode::OK, "text/plain; version=0.0.4", text),
        Err(error) => answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error),
    }
}

/// Answers with a value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => answer(status, "application/json", text),
        Err(error) => answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain",
            error.to_string(),
        ),
    }
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
