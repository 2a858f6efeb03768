//! The HTTP client: one for each upstream, with its own pool.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;

/// How long a connection may lie unused before it is given up.
///
/// A request that meets a connection its server is just closing is lost, and nobody can say whether
/// it ran. The servers most in use close after five seconds: Node's and uvicorn's default. Ours goes
/// first.
const IDLE: Duration = Duration::from_secs(4);

/// Builds the client.
///
/// Redirects are not followed: they would send a call to a place nobody configured, some of them as
/// a GET. Nothing is sent twice but what certainly never left: the connection pool's own repeat on a
/// connection that had closed before it took the request from us.
pub(super) fn build(
    url: &reqwest::Url,
    connect_timeout: Duration,
) -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .tls_backend_preconfigured(tls(url.scheme() == "https")?)
        .build()
        .map_err(|error| format!("no HTTP client: {error}"))
}

/// The provider is named here, so that it does not depend on what else is linked into the process.
fn tls(verifies: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?;
    if !verifies {
        // plain HTTP works on machines without any certificate
        return Ok(config
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth());
    }
    let verifier = Verifier::new(provider)
        .map_err(|error| format!("no TLS: the system's certificates cannot be used: {error}"))?;
    Ok(config
        .dangerous() // "dangerous" is any verifier of one's own; this is the system's
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}
