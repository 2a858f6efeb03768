//! The HTTP client, on the exporter's own runtime.

use std::error::Error;
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Request, Response};
use opentelemetry_http::{Bytes, HttpClient, HttpError, ResponseBodyTooLarge};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use parking_lot::Mutex;
use prost::Message;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;
use tokio::runtime::Handle;

use super::encode::Body;

/// The largest answer that is read: the specification's limit.
const MAX_ANSWER: usize = 4 << 20;

/// What was seen of the collector beside whether an export succeeded.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Spans that were refused in an answer that is no failure.
    rejected: AtomicU64,
    /// Why the last request failed.
    fault: Mutex<Option<String>>,
}

impl Seen {
    /// Takes how many spans were refused since the last time.
    pub(super) fn take_rejected(&self) -> u64 {
        self.rejected.swap(0, Ordering::Relaxed)
    }

    /// Takes why the last request failed.
    pub(super) fn take_fault(&self) -> Option<String> {
        self.fault.lock().take()
    }
}

/// Sends requests of one signal.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    runtime: Handle,
    headers: HeaderMap,
    body: Body,
    seen: Arc<Seen>,
}

impl Client {
    /// Wraps a client; requests run on this runtime, whatever thread asks for them, and carry this body
    /// if it holds anything.
    pub(super) fn new(
        http: reqwest::Client,
        runtime: Handle,
        headers: HeaderMap,
        body: Body,
        seen: Arc<Seen>,
    ) -> Self {
        Self {
            http,
            runtime,
            headers,
            body,
            seen,
        }
    }

    async fn send(self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // set last: what is configured beats the environment
        request.headers_mut().extend(self.headers.clone());
        if let Some(body) = self.body.get() {
            *request.body_mut() = match request.headers().get(CONTENT_ENCODING) {
                Some(encoding) if encoding == "gzip" => packed(&body)?,
                _ => body,
            };
        }
        let answer = exchange(&self.http, request).await;
        match &answer {
            Ok(answer) if answer.status().is_success() => self.look_into(answer.body()),
            Ok(answer) => self.failed(format!("it answered {}", answer.status())),
            Err(error) => self.failed(innermost(error.as_ref())),
        }
        answer
    }

    fn failed(&self, fault: String) {
        *self.seen.fault.lock() = Some(fault);
    }

    /// Counts what was refused. The answer about metrics counts its points in the same place, but
    /// nobody asks for that.
    fn look_into(&self, body: &Bytes) {
        let answer = ExportTraceServiceResponse::decode(body.as_ref()).unwrap_or_default();
        let Some(partly) = answer.partial_success else {
            return;
        };
        let rejected = u64::try_from(partly.rejected_spans).unwrap_or(0);
        if rejected > 0 {
            self.seen.rejected.fetch_add(rejected, Ordering::Relaxed);
            self.failed(format!("it refused {rejected}: {}", partly.error_message));
        }
    }
}

impl HttpClient for Client {
    // as `async_trait` writes it, without the macro
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let sending = self.runtime.spawn(self.clone().send(request));
        Box::pin(async move { sending.await? })
    }
}

/// Compresses as much as the SDK's exporter does.
fn packed(body: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body)?;
    Ok(encoder.finish()?.into())
}

async fn exchange(
    http: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let mut answer = http.execute(reqwest::Request::try_from(request)?).await?;
    let mut head = Response::new(());
    *head.status_mut() = answer.status();
    *head.headers_mut() = std::mem::take(answer.headers_mut());
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await? {
        if body.len() + part.len() > MAX_ANSWER {
            return Err(Box::new(ResponseBodyTooLarge::new()));
        }
        body.extend_from_slice(&part);
    }
    Ok(head.map(|()| body.into()))
}

/// The innermost cause says what happened; the outer ones only where.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Builds the client. Redirects are not followed: they would send keys to a place nobody configured.
pub(super) fn build(timeout: Duration, verifies: bool) -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls(verifies)?)
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
