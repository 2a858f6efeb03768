//! Asks issuers and webhooks, over HTTPS, without following redirects and with bounded answers.

use callward_core::BoxFuture;
use http::HeaderMap;
use http::header::ACCEPT;
use reqwest::redirect::Policy;
use url::Url;

/// A request to an issuer or a webhook.
pub(crate) struct Ask {
    pub(crate) url: Url,
    /// The most bytes of its answer. Of 0, none is read, and each status of success will do.
    pub(crate) limit: usize,
    /// Makes it a POST.
    pub(crate) post: Option<Post>,
}

/// What a POST has.
pub(crate) struct Post {
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// Who sends requests; tests have one of their own.
pub(crate) trait Http: Send + Sync {
    /// Returns the body of a successful answer, or why there is none, without the address.
    fn send(&self, ask: Ask) -> BoxFuture<'static, Result<Vec<u8>, String>>;
}

/// The client for real issuers.
pub(crate) struct Client(reqwest::Client);

impl Client {
    pub(crate) fn build(verifies: bool) -> Result<Self, String> {
        let tls = callward_tls::client_config(verifies).map_err(|error| error.to_string())?;
        let built = reqwest::Client::builder()
            // a redirect would lead to a place that is not configured
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls)
            .build();
        built
            .map(Self)
            .map_err(|error| format!("no HTTP client: {error}"))
    }
}

/// Returns the innermost cause, which has no address: the outer ones only add context.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

impl Http for Client {
    fn send(&self, ask: Ask) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        let Ask { url, limit, post } = ask;
        let request = match post {
            None => self.0.get(url),
            Some(Post { headers, body }) => self.0.post(url).headers(headers).body(body),
        };
        let request = request.header(ACCEPT, "application/json");
        Box::pin(async move {
            let mut answer = request.send().await.map_err(cause)?;
            let status = answer.status();
            if limit == 0 && status.is_success() {
                return Ok(Vec::new());
            }
            if status != http::StatusCode::OK {
                return Err(format!("it answered {status}"));
            }
            let mut body = Vec::new();
            while let Some(chunk) = answer.chunk().await.map_err(cause)? {
                if body.len() + chunk.len() > limit {
                    return Err(format!("its answer is longer than {limit} bytes"));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body)
        })
    }
}
