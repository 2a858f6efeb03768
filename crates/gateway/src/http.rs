//! The public HTTP listener: the MCP endpoint, and what load balancers ask.
//!
//! | path | what |
//! | --- | --- |
//! | `/mcp` | the endpoint for clients; Origin and host are checked |
//! | `/healthz` | 200 as long as the process answers |
//! | `/readyz` | 200 while calls should be sent here, else 503 and what is missing |
//! | `/metrics` | Prometheus text for known hosts, only with `http.metrics = true` |
//!
//! A host that is malformed or given twice is refused everywhere. What operators ask is on the
//! [admin listener](crate::admin).

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use callward::core::InvalidValue;
use callward_mcp::client::Upstream;
use callward_mcp::server;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, service_fn};

use crate::backend::StackBackend;
use crate::config::{Http, as_usize, show_duration};
use crate::connections::Routes;
use crate::error::AppError;
use crate::runtime::Runtime;
use crate::shutdown::{Stop, drain};
use crate::{output, readiness};

/// How long connections may take to write their last answers, once no call is in flight. Without
/// it, streams that clients only listen on would keep the process alive.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Listens. `key` says where the address can be changed.
///
/// # Errors
///
/// [`AppError`] names the address that is taken or not ours.
pub(crate) async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, AppError> {
    TcpListener::bind(address).await.map_err(|error| {
        let what = match error.kind() {
            ErrorKind::AddrInUse => {
                format!("{address} is taken by another process; choose another address with {key}")
            }
            _ => format!("cannot listen on {address} ({key})"),
        };
        AppError::io(what)(error)
    })
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
/// [`AppError`] if a pattern for `Host` or `Origin` is invalid.
pub(crate) fn gateway(
    runtime: Arc<Runtime>,
    config: &Http,
) -> Result<impl Routes<Future: Send> + use<>, AppError> {
    let hosts: Arc<[_]> = patterns::<server::HostPattern>(&config.allowed_hosts)?.into();
    let known = hosts.clone();
    let ready = runtime.clone();
    let probes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route(
            "/readyz",
            get(async move || readiness::respond(&ready, false)),
        )
        .route_layer(from_fn(move |request, next| {
            for_probes(known.clone(), request, next)
        }));
    let endpoint = endpoint(
        StackBackend::new(runtime.clone()),
        config,
        &runtime.stop.closing,
    )?;
    let mut others = probes;
    if config.metrics {
        let advice = "add it to `http.allowed_hosts` of the config";
        let metrics = async move |request: Request| match refused(
            &hosts,
            (request.uri(), request.headers()),
            advice,
        ) {
            Some(why) => json(StatusCode::FORBIDDEN, &why),
            None => scrape(&runtime),
        };
        others = others.route("/metrics", get(metrics));
    }
    Ok(routes(endpoint, others))
}

/// Gives requests for the endpoint's path to the endpoint, without the cost of a router, and all
/// others to the other routes.
pub(crate) fn routes(endpoint: server::HttpEndpoint, others: Router) -> impl Routes<Future: Send> {
    service_fn(move |request: Request| {
        let (endpoint, mut others) = (endpoint.clone(), others.clone());
        async move {
            if request.uri().path() == server::PATH {
                return Ok(endpoint.serve(request).await);
            }
            others.call(request).await
        }
    })
}

/// Admits probes by any address. A probe never sends a target in absolute form, so the host of such
/// a target has to be allowed.
async fn for_probes(hosts: Arc<[server::HostPattern]>, request: Request, next: Next) -> Response {
    let any = [server::HostPattern::Any];
    let allowed = match request.uri().authority() {
        Some(_) => &*hosts,
        None => &any,
    };
    match server::check_host(allowed, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => json(StatusCode::FORBIDDEN, &refused.to_string()),
    }
}

/// Returns why a request is refused that no web page and no foreign host may make; `None` if it
/// may. `advice` says which hosts may.
pub(crate) fn refused(
    hosts: &[server::HostPattern],
    (uri, headers): (&Uri, &HeaderMap),
    advice: &str,
) -> Option<String> {
    if headers.contains_key(header::ORIGIN) {
        return Some("web pages may not ask here".into());
    }
    let refused = server::check_host(hosts, uri, headers).err()?;
    Some(format!("{refused}: {advice}"))
}

/// Returns the MCP endpoint alone. Its notification streams end with `stop`.
///
/// # Errors
///
/// [`AppError`] if a pattern for `Host` or `Origin` is invalid.
pub(crate) fn endpoint(
    backend: Arc<impl server::Backend>,
    config: &Http,
    stop: &CancellationToken,
) -> Result<server::HttpEndpoint, AppError> {
    let mut options = server::HttpOptions::default();
    options.allowed_hosts = patterns(&config.allowed_hosts)?;
    options.allowed_origins = patterns(&config.allowed_origins)?;
    options.max_bodies = as_usize(config.max_bodies);
    options.body_timeout = config.body_timeout;
    options.max_sessions = config.max_sessions;
    options.max_sessions_per_client = config.max_sessions_per_client;
    options.proxies.clone_from(&config.connections.proxies);
    options.shutdown = stop.clone();
    Ok(server::HttpEndpoint::new(backend, options))
}

fn patterns<P: FromStr<Err = InvalidValue>>(texts: &[String]) -> Result<Vec<P>, AppError> {
    let parsed: Result<_, _> = texts.iter().map(|text| text.parse()).collect();
    // a config file was checked for this already, with file and line
    parsed.map_err(|error: InvalidValue| AppError::Usage(error.to_string()))
}

/// Runs what serves connections until asked to stop. Then, after the lame-duck time, closes it and
/// lets calls in flight end, within the limit; those that do not end with `servers`.
///
/// # Errors
///
/// [`AppError`] if the listener breaks.
pub(crate) async fn serve(
    serving: impl Future<Output = ()> + Send + 'static,
    calls: &TaskTracker,
    servers: &[Upstream],
    config: &Http,
    stop: &Stop,
) -> Result<(), AppError> {
    let mut server = tokio::spawn(serving);
    tokio::select! {
        biased;
        () = stop.asked.cancelled() => {}
        ended = &mut server => return flatten(ended),
    }
    if !config.lame_duck.is_zero() {
        output::note(format_args!(
            "stopping: not ready any more, connections are accepted for {}",
            show_duration(config.lame_duck)
        ));
        tokio::select! {
            () = tokio::time::sleep(config.lame_duck) => {}
            () = stop.at_once.cancelled() => {}
        }
    }
    stop.closing.cancel();
    drain(calls, config.drain, servers, stop).await;
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

/// Answers with all metrics as Prometheus text.
pub(crate) fn scrape(runtime: &Runtime) -> Response {
    match runtime.telemetry.text() {
        Ok(text) => answer(StatusCode::OK, "text/plain; version=0.0.4", text),
        Err(error) => answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error),
    }
}

/// Answers with a value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => answer(status, "application/json", text),
        Err(error) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            answer(status, "text/plain", error.to_string())
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}
