//! The asking side.

use std::sync::Arc;

use bytes::Bytes;
use callward::ServerId;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::events::Events;
use super::routes::SERVER;
use crate::error::AppError;
use crate::view::{
    BreakerView, CacheView, CallView, ErrorView, ExplainView, Force, Forced, LimitsReport,
    MissingView, NewWeight, Nothing, Order, Ordered, Purge, Purged, ServerView, ToolView,
};

/// The content type of every request with a body.
const JSON: &str = "application/json";

/// A running gateway.
pub(crate) struct Remote {
    client: Client,
    base: Url,
}

impl Remote {
    /// Looks whether a gateway's admin listener is at `http://HOST:PORT` or `unix:/PATH`. `None`:
    /// something else answers there.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the address cannot be used, nothing answers, or it is a gateway's public address.
    pub(crate) async fn find(url: &str) -> Result<Option<Self>, AppError> {
        let unusable =
            |error: &dyn std::fmt::Display| AppError::Usage(format!("--url {url:?}: {error}"));
        let socket = url.strip_prefix("unix:");
        let base = match socket {
            // the name is for `Host` alone
            Some(_) => Url::parse("http://localhost/"),
            None => Url::parse(url),
        };
        let base = base.map_err(|error| unusable(&error))?;
        let client = client(base.scheme() == "https", socket)?;
        let remote = Self { client, base };
        let answer = remote
            .client
            .get(remote.at(&["readyz"]))
            .send()
            .await
            .map_err(|error| {
                AppError::Remote(format!(
                    "nothing answers at {url}: {}\n\
                 start a gateway with `callward serve`, or name one by its admin address: `--url URL`",
                    cause(&error)
                ))
            })?;
        let body: Option<serde_json::Value> = answer.json_or_none().await;
        let Some(body) = body.filter(|body| body.get("callward").is_some()) else {
            return Ok(None);
        };
        // only the admin listener tells about servers
        if body.get("servers").is_none() {
            return Err(AppError::Usage(format!(
                "{url} is the public address of a gateway, where clients are served; name its admin \
                 address, which it says when it starts, or on its machine leave out --url"
            )));
        }
        Ok(Some(remote))
    }

    /// Lists the tools.
    pub(crate) async fn tools(&self) -> Result<Vec<ToolView>, AppError> {
        self.read(self.client.get(self.at(&["api", "tools"])).send().await)
            .await
    }

    /// Lists what is not among the tools. Gateways that cannot say so say nothing.
    pub(crate) async fn missing(&self) -> Vec<MissingView> {
        let answer = self.client.get(self.at(&["api", "missing"])).send().await;
        self.read(answer).await.unwrap_or_default()
    }

    /// Explains one tool, or one call of it.
    pub(crate) async fn explain(
        &self,
        tool: &str,
        arguments: Option<Bytes>,
    ) -> Result<ExplainView, AppError> {
        can_be_asked(tool)?;
        let request = match arguments {
            None => self.client.get(self.at(&["api", "tools", tool])),
            Some(arguments) => self
                .client
                .post(self.at(&["api", "tools", tool, "explain"]))
                .header(CONTENT_TYPE, JSON)
                .body(arguments),
        };
        self.read(request.send().await).await
    }

    /// Calls one tool, at one server alone if `pin` names one.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Bytes,
        pin: Option<ServerId>,
    ) -> Result<CallView, AppError> {
        can_be_asked(tool)?;
        let mut url = self.at(&["api", "tools", tool, "call"]);
        if let Some(pin) = pin {
            url.query_pairs_mut().append_pair(SERVER, pin.as_str());
        }
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, JSON)
            .body(arguments);
        self.read(request.send().await).await
    }

    /// Asks what the cache did.
    pub(crate) async fn cache(&self) -> Result<CacheView, AppError> {
        self.read(self.client.get(self.at(&["api", "cache"])).send().await)
            .await
    }

    /// Lets the cache forget.
    pub(crate) async fn purge(&self, what: &Purge) -> Result<Purged, AppError> {
        self.post(&["api", "cache", "purge"], what).await
    }

    /// Asks how the breakers are.
    pub(crate) async fn breakers(&self) -> Result<Vec<BreakerView>, AppError> {
        let answer = self.client.get(self.at(&["api", "breakers"])).send().await;
        self.read(answer).await
    }

    /// Holds a breaker open or closed, or does not any more.
    pub(crate) async fn force(&self, what: &Force) -> Result<Forced, AppError> {
        self.post(&["api", "breakers"], what).await
    }

    /// Asks what the limits let through, hold back and refuse.
    pub(crate) async fn limits(&self) -> Result<LimitsReport, AppError> {
        self.read(self.client.get(self.at(&["api", "limits"])).send().await)
            .await
    }

    /// Asks how the servers are.
    pub(crate) async fn servers(&self) -> Result<Vec<ServerView>, AppError> {
        self.read(self.client.get(self.at(&["api", "servers"])).send().await)
            .await
    }

    /// Takes a server out of service or back, or changes its weight.
    pub(crate) async fn order(&self, order: Order, server: &ServerId) -> Result<Ordered, AppError> {
        let path = |what| ["api", "servers", server.as_str(), what];
        match order {
            Order::Drain => self.post(&path("drain"), &Nothing {}).await,
            Order::Undrain => self.post(&path("undrain"), &Nothing {}).await,
            Order::Weigh(weight) => self.post(&path("weight"), &NewWeight { weight }).await,
        }
    }

    /// Follows what the router does from now on.
    pub(crate) async fn events(&self) -> Result<Events, AppError> {
        let request = self.client.get(self.at(&["api", "routes", "events"]));
        let answer = request.send().await;
        let answer = answer.map_err(|error| failed(&self.base, &error))?;
        if answer.status() == StatusCode::OK {
            return Ok(Events::new(answer));
        }
        let status = answer.status();
        let body = answer.bytes().await.unwrap_or_default();
        Err(self.refused(status, &body))
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, AppError> {
        let body = serde_json::to_vec(body).map_err(|error| AppError::Usage(error.to_string()))?;
        let request = self
            .client
            .post(self.at(path))
            .header(CONTENT_TYPE, JSON)
            .body(body);
        self.read(request.send().await).await
    }

    /// Replaces the path.
    fn at(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.set_query(None);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(path);
        }
        url
    }

    async fn read<T: DeserializeOwned>(
        &self,
        answer: Result<Response, reqwest::Error>,
    ) -> Result<T, AppError> {
        let answer = answer.map_err(|error| failed(&self.base, &error))?;
        let status = answer.status();
        let body = answer
            .bytes()
            .await
            .map_err(|error| failed(&self.base, &error))?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map_err(|error| {
                AppError::Remote(format!(
                    "the answer of {} cannot be read: {error}",
                    self.base
                ))
            });
        }
        Err(self.refused(status, &body))
    }

    /// Takes the gateway's own word on why it refused.
    fn refused(&self, status: StatusCode, body: &[u8]) -> AppError {
        let told = serde_json::from_slice::<ErrorView>(body).map(|error| error.message);
        AppError::Remote(told.unwrap_or_else(|_| {
            format!(
                "{} answered {status}: {}",
                self.base,
                String::from_utf8_lossy(body)
            )
        }))
    }
}

/// Names that a path cannot carry would ask for something else.
fn can_be_asked(tool: &str) -> Result<(), AppError> {
    if matches!(tool, "" | "." | "..") {
        return Err(AppError::Usage(format!(
            "no tool can have the name {tool:?} here"
        )));
    }
    Ok(())
}

fn client(verifies: bool, socket: Option<&str>) -> Result<Client, AppError> {
    let unusable =
        |error: &dyn std::fmt::Display| AppError::Remote(format!("no HTTP client: {error}"));
    // no proxy: gateways are asked on the machine or the network they run on
    let mut builder = Client::builder().no_proxy();
    #[cfg(unix)]
    if let Some(path) = socket {
        builder = builder.unix_socket(path);
    }
    #[cfg(not(unix))]
    if socket.is_some() {
        return Err(AppError::Usage("--url: no Unix sockets here".into()));
    }
    if verifies {
        // the system's certificates, checked by the provider that is linked in anyway; an error
        // means that one is installed already
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        // plain HTTP works on machines without any certificate
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(tls);
    }
    builder.build().map_err(|error| unusable(&error))
}

trait JsonOrNone {
    async fn json_or_none(self) -> Option<serde_json::Value>;
}

impl JsonOrNone for Response {
    async fn json_or_none(self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.bytes().await.ok()?).ok()
    }
}

fn failed(url: &Url, error: &reqwest::Error) -> AppError {
    AppError::Remote(format!("asking {url} failed: {}", cause(error)))
}

/// The innermost cause says what happened; the outer ones only where.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
