//! The HTTP client that sends to the collector.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use reqwest::redirect::Policy;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::config::OtlpConfig;

/// A blocking client, as the SDK sends from threads of its own, that adds the configured headers.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::blocking::Client,
    /// Not given to the SDK, which does not mark their values as secret.
    headers: HeaderMap,
}

impl Client {
    pub(super) fn build(config: &OtlpConfig) -> Result<Self, String> {
        let mut urls = [&config.traces, &config.metrics].into_iter().flatten();
        let builder = reqwest::blocking::Client::builder()
            .timeout(config.timeout)
            // a redirect would send the headers to a place that is not configured
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls(urls.any(|url| url.scheme() == "https"))?);
        // a blocking client must not be built within an async runtime
        let building = std::thread::spawn(|| builder.build());
        let built = building.join().map_err(|_| "no HTTP client: it panicked")?;
        Ok(Self {
            http: built.map_err(|error| format!("no HTTP client: {error}"))?,
            headers: config.headers.clone(),
        })
    }
}

impl HttpClient for Client {
    // the form that `async_trait` expands to
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        mut request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        // set last: the configuration beats the environment
        request.headers_mut().extend(self.headers.clone());
        self.http.send_bytes(request)
    }
}

/// Names the provider, so that it does not depend on what else is linked into the process.
fn tls(verifies: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?;
    if !verifies {
        // plain HTTP works on machines without any certificate
        return Ok(config
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth());
    }
    let verifier = Verifier::new(provider)
        .map_err(|error| format!("no TLS: the system's certificates cannot be used: {error}"))?;
    Ok(config
        .dangerous() // "dangerous" is any verifier but rustls' own; this is the system's
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}
