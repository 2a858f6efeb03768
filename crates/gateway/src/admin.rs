//! The admin listener, for operators and the command line, separate from clients.
//!
//! | path | what |
//! | --- | --- |
//! | `/api/…` | what `callward tools`, `call`, `explain`, `cache`, `servers` and so on ask |
//! | `/metrics` | Prometheus text |
//! | `/ask/TOKEN` | the [page](ask) that asks a person for a secret |
//! | `/readyz` | as on the public listener, and the servers; their errors for viewers only |
//!
//! Each other route needs a role, see [`api::routes`] and [`access`]. What browsers send for a page
//! is refused there whatever it shows: an `Origin`, or a `Host` that is not the listener's. No
//! answer has headers of CORS.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderName;
use axum::middleware::from_fn;
use axum::serve::ListenerExt;
use callward_mcp::server::HostPattern;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use crate::admin::access::Access;
use crate::config::AdminAddress;
use crate::connections::ConnectionLimits;
use crate::error::AppError;
use crate::http::{self, admit, bind};
use crate::runtime::Runtime;
use crate::{api, connections};

/// Where it listens if nothing else is configured.
pub(crate) const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7421);

/// The bound listener.
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, socket::SocketPath),
}

impl Listener {
    /// Listens at the configured address, or else at the default one, or on a free port if that is
    /// taken.
    ///
    /// # Errors
    ///
    /// [`AppError`] if a configured address is taken or cannot be bound.
    pub(crate) async fn bind(configured: Option<&AdminAddress>) -> Result<Self, AppError> {
        match configured {
            Some(AdminAddress::Tcp(address)) => {
                bind(*address, "`admin.listen`").await.map(Self::Tcp)
            }
            #[cfg(unix)]
            Some(AdminAddress::Unix(path)) => {
                let bound = socket::bind(path).await;
                let what = format!("cannot listen on {} (`admin.listen`)", path.display());
                let (listener, path) = bound.map_err(AppError::io(what))?;
                Ok(Self::Unix(listener, path))
            }
            #[cfg(not(unix))]
            Some(AdminAddress::Unix(path)) => Err(AppError::Usage(format!(
                "`admin.listen`: no Unix sockets here: {}",
                path.display()
            ))),
            None => match TcpListener::bind(DEFAULT).await {
                Ok(listener) => Ok(Self::Tcp(listener)),
                Err(error) => {
                    tracing::info!(%error, "{DEFAULT} is taken: the admin listener gets a free port");
                    let free = SocketAddr::new(DEFAULT.ip(), 0);
                    bind(free, "`admin.listen`").await.map(Self::Tcp)
                }
            },
        }
    }

    /// Returns where it listens.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the system does not say.
    pub(crate) fn address(&self) -> Result<AdminAddress, AppError> {
        match self {
            Self::Tcp(listener) => http::bound(listener).map(AdminAddress::Tcp),
            #[cfg(unix)]
            Self::Unix(_, path) => Ok(AdminAddress::Unix(path.to_path_buf())),
        }
    }

    /// Serves connections until `stop` fires and each has answered its requests.
    pub(crate) async fn serve(
        self,
        routes: Router,
        limits: ConnectionLimits,
        stop: CancellationToken,
    ) {
        match self {
            Self::Tcp(listener) => {
                let listener = listener.tap_io(connections::prepare);
                connections::serve(listener, Some, routes, limits, None, stop).await;
            }
            #[cfg(unix)]
            Self::Unix(listener, path) => {
                // the path is dropped together with the listener
                let listener = listener.tap_io(move |_| _ = &path);
                connections::serve(listener, |_| None, routes, limits, None, stop).await;
            }
        }
    }
}

/// Puts the routes together, for requests that name loopback or one of these hosts.
pub(crate) fn routes(runtime: Arc<Runtime>, access: Access, mut hosts: Vec<HostPattern>) -> Router {
    hosts.push(HostPattern::Loopback);
    let access = Arc::new(access);
    let page = ask::routes(runtime.questions.clone(), access.clone());
    let routes = api::routes(runtime, &access).merge(page);
    routes.layer(from_fn(move |mut request, next| {
        let foreign = ask::refused(&mut request);
        admit(foreign.or_else(|| refused(&hosts, &request)), request, next)
    }))
}

/// Browsers mark the requests of pages, even without an `Origin`.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns why a request is refused; `None` if it is not.
fn refused(hosts: &[HostPattern], request: &Request) -> Option<String> {
    let sites = request.headers().get_all(SEC_FETCH_SITE);
    if sites.iter().any(|site| site.as_bytes() != b"none") {
        return Some("web pages may not use the admin API".into());
    }
    let advice = "the admin API (`admin.listen`) answers the names 127.0.0.1, [::1] and localhost, \
                  and those of `admin.allowed_hosts`";
    http::refused(hosts, request, advice)
}

pub(crate) mod access;
pub(crate) mod ask;
#[cfg(unix)]
mod socket;
