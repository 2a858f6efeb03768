//! The HTTP client that sends to the collector.

use std::future::Future;
use std::pin::Pin;

use http::{HeaderMap, Request, Response};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use reqwest::redirect::Policy;

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
        let verifies = urls.any(|url| url.scheme() == "https");
        let tls = callward_tls::client_config(verifies).map_err(|error| error.to_string())?;
        let builder = reqwest::blocking::Client::builder()
            .timeout(config.timeout)
            // a redirect would send the headers to a place that is not configured
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls);
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
