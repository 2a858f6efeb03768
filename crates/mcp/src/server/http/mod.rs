//! Serves clients over streamable HTTP, both eras on one path.

mod accept;
mod body;
mod cors;
mod endpoint;
mod guard;
mod host;
mod mirrored;
mod options;
mod origin;
mod post;
mod session;
mod session_table;
mod stream;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::{Method, StatusCode};

use self::endpoint::{Endpoint, refuse};
use super::Backend;
use super::error::Fault;

pub use self::guard::{HostRefused, check_host};
pub use self::host::HostPattern;
pub use self::options::{HttpOptions, InvalidOption};
pub use self::origin::OriginPattern;

/// The path at which [`router`] serves.
pub const PATH: &str = "/mcp";

/// Serves a backend over HTTP. Cloning copies a pointer.
///
/// The caller is taken from the request's extensions, where an outer layer may have put an
/// `Arc<Caller>` or a [`Principal`](callward_core::Principal); else it is the principal
/// `anonymous`. Pages of the origins that are allowed may use it (CORS). Set `TCP_NODELAY` on the
/// listener: without it the events of a stream wait for the client's acknowledgements.
pub struct HttpEndpoint<B>(Arc<Endpoint<B>>);

impl<B> fmt::Debug for HttpEndpoint<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpEndpoint")
            .field(&self.0.options)
            .finish()
    }
}

impl<B> Clone for HttpEndpoint<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> HttpEndpoint<B> {
    /// Makes the endpoint of a backend.
    pub fn new(backend: Arc<B>, options: HttpOptions) -> Self {
        Self(Arc::new(Endpoint::new(backend, options)))
    }

    /// Answers a request, whatever its path.
    pub async fn serve(self, request: Request) -> Response {
        let Self(endpoint) = self;
        let origin = endpoint.origin(request.headers());
        let nameless = |fault| (None, fault);
        let answered = match (endpoint.check_source(&request), request.method()) {
            (Err(fault), &Method::OPTIONS) => return refuse(None, &fault),
            (Err(fault), _) => Err(nameless(fault)),
            (Ok(()), &Method::OPTIONS) => return cors::preflight(origin, request.headers()),
            (Ok(()), &Method::POST) => post::take(&endpoint, request).await,
            (Ok(()), &Method::GET) => endpoint::listen(&endpoint, &request).map_err(nameless),
            (Ok(()), &Method::DELETE) => {
                endpoint::end_session(&endpoint, &request).map_err(nameless)
            }
            _ => {
                let status = StatusCode::METHOD_NOT_ALLOWED;
                Err(nameless(Fault::transport(status, "use GET or POST")))
            }
        };
        let response = answered.unwrap_or_else(|(id, fault)| refuse(id.as_ref(), &fault));
        cors::expose(response, origin)
    }
}

/// Returns a router that serves the backend at [`PATH`]; see [`HttpEndpoint`].
pub fn router<B: Backend>(backend: Arc<B>, options: HttpOptions) -> Router {
    let endpoint = HttpEndpoint::new(backend, options);
    let serve = move |request| endpoint.clone().serve(request);
    Router::new().route(PATH, any(serve))
}
