//! The public HTTP listener: the MCP endpoint, and what load balancers ask.
//!
//! | path | what |
//! | --- | --- |
//! | `/mcp` | the endpoint for clients; Origin and host are checked |
//! | `/mcp/t/NAME` | the same, for the tools of a toolset alone |
//! | `/healthz` | 200 as long as the process answers |
//! | `/readyz` | 200 while calls should be sent here, else 503 and what is missing |
//! | `/metrics` | Prometheus text for known hosts, only with `http.metrics = true` |
//! | `/.well-known/oauth-protected-resource` | how to get a token, with `auth.issuers` |
//!
//! A host that is malformed or given twice is refused everywhere. What operators ask is on the
//! [admin listener](crate::admin).

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use callward_auth::well_known_path;
use callward_mcp::server;
use serde::Serialize;
use tokio::net::TcpListener;
use tower::{Service, service_fn};

use crate::auth::Auth;
use crate::backend::StackBackend;
use crate::config::{Http, as_usize};
use crate::connections::Routes;
use crate::error::AppError;
use crate::readiness;
use crate::runtime::Runtime;
use crate::shutdown::Stop;
use crate::toolsets::{self, ByPath};

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
    auth: &Auth,
) -> Result<impl Routes<Future: Send> + use<>, AppError> {
    let hosts: Arc<[server::HostPattern]> = patterns(&config.allowed_hosts)?.into();
    let (known, ready) = (hosts.clone(), runtime.clone());
    let ready = async move || readiness::respond(&ready, None);
    // probes may use any address; none sends a target in absolute form, so that its host counts
    let for_probes = move |request: Request, next| {
        let any = [server::HostPattern::Any];
        let allowed = request.uri().authority().map_or(&any[..], |_| &known);
        let refused = server::check_host(allowed, request.uri(), request.headers()).err();
        admit(refused.map(|refused| refused.to_string()), request, next)
    };
    let mut others = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route_layer(from_fn(for_probes));
    if let Some(metadata) = auth.metadata.clone() {
        // any page may read how to get a token
        let anyone = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
        let metadata = get(async move || (anyone, json(StatusCode::OK, &metadata)));
        for endpoint in ["", server::PATH] {
            let path = well_known_path(endpoint);
            others = others.route(&path, metadata.clone());
        }
    }
    let mut identify = auth.identify(&runtime.telemetry.refusals);
    let toolsets = runtime.toolsets.clone();
    let has_toolsets = toolsets.is_some();
    if let Some(toolsets) = toolsets {
        identify = Arc::new(ByPath { identify, toolsets });
    }
    let backend = StackBackend::new(runtime.clone());
    let endpoint = endpoint(backend, identify, config, &runtime.stop)?;
    if config.metrics {
        let for_scrapers = move |request: Request, next| {
            let advice = "add it to `http.allowed_hosts` of the config";
            admit(refused(&hosts, &request, advice), request, next)
        };
        let metrics = get(async move || scrape(&runtime));
        others = others.route("/metrics", metrics.layer(from_fn(for_scrapers)));
    }
    Ok(routes(endpoint, others, has_toolsets))
}

/// Gives requests for the endpoint's path to the endpoint, without the cost of a router, and all
/// others to the other routes. Its paths are those of toolsets, too, if there are any.
pub(crate) fn routes(
    endpoint: server::HttpEndpoint,
    others: Router,
    has_toolsets: bool,
) -> impl Routes<Future: Send> {
    service_fn(move |request: Request| {
        let (endpoint, mut others) = (endpoint.clone(), others.clone());
        async move {
            let path = request.uri().path();
            if path == server::PATH || (has_toolsets && toolsets::of_path(path).is_some()) {
                return Ok(endpoint.serve(request).await);
            }
            others.call(request).await
        }
    })
}

/// Answers a request unless there is a reason to refuse it.
pub(crate) async fn admit(refused: Option<String>, request: Request, next: Next) -> Response {
    match refused {
        Some(why) => json(StatusCode::FORBIDDEN, &why),
        None => next.run(request).await,
    }
}

/// Returns why a request is refused that no web page and no foreign host may make; `None` if it
/// may. `advice` says which hosts may.
pub(crate) fn refused(
    hosts: &[server::HostPattern],
    request: &Request,
    advice: &str,
) -> Option<String> {
    if request.headers().contains_key(header::ORIGIN) {
        return Some("web pages may not ask here".into());
    }
    let refused = server::check_host(hosts, request.uri(), request.headers()).err()?;
    Some(format!("{refused}: {advice}"))
}

/// Returns the MCP endpoint alone. It refuses calls, and ends streams, as `stop` says.
///
/// # Errors
///
/// [`AppError`] if a pattern for `Host` or `Origin` is invalid.
pub(crate) fn endpoint(
    backend: Arc<impl server::Backend>,
    identify: Arc<dyn server::Identify>,
    config: &Http,
    stop: &Stop,
) -> Result<server::HttpEndpoint, AppError> {
    let mut options = server::HttpOptions::default();
    options.allowed_hosts = patterns(&config.allowed_hosts)?;
    options.allowed_origins = patterns(&config.allowed_origins)?;
    options.max_bodies = as_usize(config.max_bodies);
    options.body_timeout = config.body_timeout;
    options.max_sessions = config.max_sessions;
    options.max_sessions_per_client = config.max_sessions_per_client;
    options.proxies.clone_from(&config.connections.proxies);
    options.drain = stop.closing.clone();
    options.shutdown = stop.drained.clone();
    Ok(server::HttpEndpoint::new(backend, identify, options))
}

/// Reads patterns for `Host` or `Origin`.
///
/// # Errors
///
/// What is wrong with one of them.
pub(crate) fn patterns<P: FromStr<Err = E>, E>(texts: &[String]) -> Result<Vec<P>, E> {
    texts.iter().map(|text| text.parse()).collect()
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
