//! The asking side.

use std::sync::Arc;

use bytes::Bytes;
use callward::ServerId;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SERVER;
use super::events::{self, Events};
use crate::error::AppError;
use crate::view::CallView;

/// A running gateway.
pub(crate) struct Remote {
    client: Client,
    base: Url,
}

impl Remote {
    /// Checks whether a gateway's admin listener is at `http://HOST:PORT` or `unix:/PATH`. `None`:
    /// something else answers there.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the address cannot be used, nothing answers, or it is a gateway's public
    /// address.
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
        let body = answer.bytes().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if body.get("callward").is_none() {
            return Ok(None);
        }
        // only the admin listener reports servers
        if body.get("servers").is_none() {
            return Err(AppError::Usage(format!(
                "{url} is the public address of a gateway, where clients are served; name its admin \
                 address, which it says when it starts, or on its machine leave out --url"
            )));
        }
        Ok(Some(remote))
    }

    /// Asks at a path below `/api`, or gives an order there if there is a body.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: Option<Bytes>,
    ) -> Result<T, AppError> {
        self.ask_at(self.api(path)?, body).await
    }

    /// Calls one tool, at one server alone if `pin` names one.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Bytes,
        pin: Option<ServerId>,
    ) -> Result<CallView, AppError> {
        let mut url = self.api(&["tools", tool, "call"])?;
        if let Some(pin) = pin {
            url.query_pairs_mut().append_pair(SERVER, pin.as_str());
        }
        self.ask_at(url, Some(arguments)).await
    }

    /// Follows what the router does from now on.
    pub(crate) async fn events(&self) -> Result<Events, AppError> {
        let request = self.client.get(self.api(&["routes", "events"])?);
        Ok(events::read(self.answer(request).await?.bytes_stream()))
    }

    /// Returns the URL of a path below `/api`. Names that a path cannot carry would ask for
    /// something else.
    fn api(&self, path: &[&str]) -> Result<Url, AppError> {
        if let Some(name) = path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(AppError::Usage(format!(
                "no tool can have the name {name:?} here"
            )));
        }
        Ok(self.at(&[&["api"], path].concat()))
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

    async fn ask_at<T: DeserializeOwned>(
        &self,
        url: Url,
        body: Option<Bytes>,
    ) -> Result<T, AppError> {
        let request = match body {
            None => self.client.get(url),
            Some(body) => {
                let request = self.client.post(url).body(body);
                request.header(CONTENT_TYPE, "application/json")
            }
        };
        let body = self.answer(request).await?.bytes().await;
        let body = body.map_err(|error| self.failed(&error))?;
        serde_json::from_slice(&body).map_err(|error| {
            let text = format!("the answer of {} cannot be read: {error}", self.base);
            AppError::Remote(text)
        })
    }

    /// Returns the answer to a request, or the gateway's own reason for a refusal.
    async fn answer(&self, request: RequestBuilder) -> Result<Response, AppError> {
        let answer = request.send().await.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        if status == StatusCode::OK {
            return Ok(answer);
        }
        let body = answer.bytes().await.map_err(|error| self.failed(&error))?;
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(AppError::Remote(match error["message"].as_str() {
            Some(message) => message.to_owned(),
            None => {
                let body = String::from_utf8_lossy(&body);
                format!("{} answered {status}: {body}", self.base)
            }
        }))
    }

    fn failed(&self, error: &reqwest::Error) -> AppError {
        AppError::Remote(format!("asking {} failed: {}", self.base, cause(error)))
    }
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

/// Returns the innermost cause: the outer ones only add context.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
