//! Serves clients over streamable HTTP, both eras on one path.

mod accept;
mod body;
mod cors;
mod endpoint;
mod events;
mod guard;
mod host;
mod identify;
mod mirrored;
mod options;
mod origin;
mod post;
mod resume;
mod session;
mod session_table;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::{Method, StatusCode, Version};

use self::endpoint::{Endpoint, refuse, unidentified};
use super::Backend;
use super::error::Fault;

pub use self::guard::{HostRefused, check_host};
pub use self::host::HostPattern;
pub use self::identify::{Anonymous, Identified, Identify, Refused};
pub use self::options::HttpOptions;
pub use self::origin::OriginPattern;

/// The path at which [`router`] serves.
pub const PATH: &str = "/mcp";

/// Serves a backend over HTTP. Cloning copies a pointer.
///
/// Pages of the origins that are allowed may use it (CORS). Set `TCP_NODELAY` on the listener:
/// without it the events of a stream wait for the client's acknowledgements.
#[derive(Debug, Clone)]
pub struct HttpEndpoint(Arc<Endpoint>);

impl HttpEndpoint {
    /// Makes the endpoint of a backend, for callers that are identified so.
    pub fn new(
        backend: Arc<impl Backend>,
        identify: Arc<dyn Identify>,
        options: HttpOptions,
    ) -> Self {
        Self(Arc::new(Endpoint::new(backend, identify, options)))
    }

    /// Answers a request, whatever its path.
    pub async fn serve(self, request: Request) -> Response {
        let Self(endpoint) = self;
        let (parts, body) = request.into_parts();
        let origin = match guard::check(&endpoint.options, &parts.uri, &parts.headers) {
            Ok(origin) => origin,
            Err(fault) => return refuse(&fault),
        };
        if parts.method == Method::OPTIONS {
            return cors::preflight(origin, &parts.headers);
        }
        let answered = match endpoint.identify.identify(&parts).await {
            Err(refused) => {
                if parts.version == Version::HTTP_2 {
                    body::discard(body).await;
                }
                return cors::expose(unidentified(refused), origin);
            }
            Ok(caller) => match parts.method {
                Method::POST => post::take(&endpoint, &caller, &parts, body).await,
                Method::GET => endpoint.listen(&caller, &parts),
                Method::DELETE => endpoint.end_session(&caller, &parts),
                _ => {
                    let status = StatusCode::METHOD_NOT_ALLOWED;
                    Err(Fault::transport(status, "use GET or POST"))
                }
            },
        };
        cors::expose(answered.unwrap_or_else(|fault| refuse(&fault)), origin)
    }
}

/// Returns a router that serves the backend at [`PATH`]; see [`HttpEndpoint`].
pub fn router(
    backend: Arc<impl Backend>,
    identify: Arc<dyn Identify>,
    options: HttpOptions,
) -> Router {
    let endpoint = HttpEndpoint::new(backend, identify, options);
    let serve = move |request| endpoint.clone().serve(request);
    Router::new().route(PATH, any(serve))
}
