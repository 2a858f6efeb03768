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
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;

use self::endpoint::Endpoint;
use super::Backend;

pub use self::guard::{HostRefused, check_host};
pub use self::host::HostPattern;
pub use self::options::{HttpOptions, InvalidOption};
pub use self::origin::OriginPattern;

/// Returns a router that serves the backend at the path of the options.
///
/// The caller is taken from the request's extensions, where an outer layer may have put an
/// `Arc<Caller>` or a [`Principal`](callward_core::Principal); else it is the principal
/// `anonymous`. Pages of the origins that are allowed may use it (CORS). Set `TCP_NODELAY` on the
/// listener: without it the events of a stream wait for the client's acknowledgements.
pub fn router<B: Backend>(backend: Arc<B>, options: HttpOptions) -> Router {
    let path = options.path().to_owned();
    let endpoint = Arc::new(Endpoint::new(backend, options));
    Router::new()
        .route(
            &path,
            post(post::serve::<B>)
                .get(endpoint::listen::<B>)
                .delete(endpoint::end_session::<B>)
                .options(endpoint::options::<B>),
        )
        .with_state(endpoint)
}
