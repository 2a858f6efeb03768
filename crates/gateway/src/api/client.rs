//! The asking side: finds a gateway and asks it.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use callward::ServerId;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tower::ServiceExt;

use super::approvals;
use super::events::{self, Events};
use super::{SERVER, TOTAL};
use crate::admin::access::{self, Access};
use crate::auth::Auth;
use crate::commands::serve::default_file;
use crate::config::{AdminAddress, Config, Servers};
use crate::error::AppError;
use crate::registered::{self, Gateway, Token};
use crate::runtime::Runtime;
use crate::state_dir::StateDir;
use crate::{admin, args};

/// Where a gateway is asked whose address is not a URL.
const LOCALHOST: &str = "http://localhost/";

/// The environment variable with the credential for the gateway at `--url`. It is not an argument,
/// which all users could read.
const TOKEN: &str = "CALLWARD_ADMIN_TOKEN";

/// A gateway to ask.
pub(crate) struct Remote {
    at: At,
    base: Url,
    /// The `Authorization` header.
    credential: Option<HeaderValue>,
}

enum At {
    Elsewhere(Client),
    /// In this process: its routes are called.
    Here(Router),
}

impl Remote {
    /// Checks whether a gateway's admin listener is at `http://HOST:PORT` or `unix:/PATH`. `None`:
    /// something else answers there. The token is shown to a gateway only.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the address or the token cannot be used, nothing answers, or it is a
    /// gateway's public address.
    async fn find(url: &str, token: Option<Token>) -> Result<Option<Self>, AppError> {
        let socket = url.strip_prefix("unix:");
        // of a socket, the name is for `Host` alone
        let base = Url::parse(socket.map_or(url, |_| LOCALHOST));
        let base = base.map_err(|error| AppError::Usage(format!("--url {url:?}: {error}")))?;
        let at = At::Elsewhere(client(base.scheme() == "https", socket)?);
        let credential = None;
        let mut remote = Self {
            at,
            base,
            credential,
        };
        let ready = remote.at(&["readyz"]);
        let answer = remote.send(Method::GET, &ready, Bytes::new()).await;
        let answer = answer.map_err(|error| {
            AppError::Remote(match error.starts_with("invalid peer certificate") {
                true => format!(
                    "what answers at {url} is not trusted: {error}\n\
                     check the name in the URL; SSL_CERT_FILE names a file with authorities to trust",
                ),
                false => format!(
                    "nothing answers at {url}: {error}\n\
                     start a gateway with `callward serve`, or name one by its admin address: `--url URL`",
                ),
            })
        })?;
        let body = whole(answer).await.unwrap_or_default();
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
        if let Some(Token(token)) = token {
            let header = HeaderValue::try_from(format!("Bearer {}", token.trim()));
            let mut header = header.map_err(|_| {
                let text = format!("{TOKEN} is not a key or a token: expected visible ASCII");
                AppError::Usage(text)
            })?;
            header.set_sensitive(true);
            remote.credential = Some(header);
        }
        Ok(Some(remote))
    }

    /// Asks a gateway in this process.
    ///
    /// # Errors
    ///
    /// None in practice: its URL is fixed.
    pub(crate) fn here(runtime: Arc<Runtime>) -> Result<Self, AppError> {
        let base = Url::parse(LOCALHOST).map_err(|error| AppError::Usage(error.to_string()))?;
        let operator = access::principal(&runtime.stack);
        let refusals = &runtime.telemetry.refusals;
        let access = Access::new(&Auth::default(), None, refusals, operator);
        let at = At::Here(admin::routes(runtime, access, Vec::new()));
        let credential = None;
        Ok(Self {
            at,
            base,
            credential,
        })
    }

    /// Asks at a path below `/api`, or gives an order there if there is a body.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: Option<Bytes>,
    ) -> Result<T, AppError> {
        self.read(&self.ask_at(&self.api(path)?, body).await?)
    }

    /// Removes what is at a path below `/api`, and returns what it was.
    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, AppError> {
        let url = self.api(path)?;
        let answer = self.send(Method::DELETE, &url, Bytes::new()).await;
        let answer = self.accepted(answer).await?;
        let body = whole(answer).await.map_err(|error| self.failed(&error))?;
        self.read(&body)
    }

    /// Lists requests for approval, also those that have ended if `all`.
    pub(crate) async fn approvals(&self, all: bool) -> Result<Value, AppError> {
        let mut url = self.api(&["approvals"])?;
        url.set_query(all.then_some(approvals::ALL));
        self.read(&self.ask_at(&url, None).await?)
    }

    /// Lists the tools that these parameters ask for; and how many there are, of which they may be
    /// one page.
    pub(crate) async fn tools(
        &self,
        query: &[(String, String)],
    ) -> Result<(Vec<Value>, usize), AppError> {
        let mut url = self.api(&["tools"])?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let answer = self.answer(&url, None).await?;
        let total = answer.headers().get(TOTAL);
        let total = total.and_then(|total| total.to_str().ok()?.parse().ok());
        let body = whole(answer).await.map_err(|error| self.failed(&error))?;
        let tools: Vec<Value> = self.read(&body)?;
        let total = total.unwrap_or(tools.len());
        Ok((tools, total))
    }

    /// Explains a tool, or one call of it, for the caller that these parameters name.
    pub(crate) async fn explain(
        &self,
        tool: &str,
        arguments: Option<Bytes>,
        who: &[(&str, String)],
    ) -> Result<Value, AppError> {
        let mut url = match arguments {
            Some(_) => self.api(&["tools", tool, "explain"])?,
            None => self.api(&["tools", tool])?,
        };
        if !who.is_empty() {
            url.query_pairs_mut().extend_pairs(who);
        }
        self.read(&self.ask_at(&url, arguments).await?)
    }

    /// Calls one tool, at one server alone if `pin` names one. Returns the outcome, and the result
    /// as it was written.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Bytes,
        pin: Option<ServerId>,
    ) -> Result<(Value, Option<Box<RawValue>>), AppError> {
        #[derive(Deserialize)]
        struct Answer {
            result: Option<Box<RawValue>>,
        }
        let mut url = self.api(&["tools", tool, "call"])?;
        if let Some(pin) = pin {
            url.query_pairs_mut().append_pair(SERVER, pin.as_str());
        }
        let body = self.ask_at(&url, Some(arguments)).await?;
        Ok((self.read(&body)?, self.read::<Answer>(&body)?.result))
    }

    /// Follows the stream of events at a path below `/api`, from now on.
    pub(crate) async fn events(&self, path: &[&str]) -> Result<Events, AppError> {
        let answer = self.answer(&self.api(path)?, None).await?;
        Ok(events::read(answer.into_body().into_data_stream()))
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

    async fn ask_at(&self, url: &Url, body: Option<Bytes>) -> Result<Bytes, AppError> {
        whole(self.answer(url, body).await?)
            .await
            .map_err(|error| self.failed(&error))
    }

    fn read<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T, AppError> {
        serde_json::from_slice(body).map_err(|error| {
            let text = format!("the answer of {} cannot be read: {error}", self.base);
            AppError::Remote(text)
        })
    }

    /// Returns the answer to a request, or the gateway's own reason for a refusal.
    async fn answer(&self, url: &Url, body: Option<Bytes>) -> Result<Response<Body>, AppError> {
        let method = body.as_ref().map_or(Method::GET, |_| Method::POST);
        let answer = self.send(method, url, body.unwrap_or_default()).await;
        self.accepted(answer).await
    }

    async fn accepted(
        &self,
        answer: Result<Response<Body>, String>,
    ) -> Result<Response<Body>, AppError> {
        let answer = answer.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        if status == StatusCode::OK {
            return Ok(answer);
        }
        let body = whole(answer).await.map_err(|error| self.failed(&error))?;
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(AppError::Remote(match error["message"].as_str() {
            Some(message) if status == StatusCode::UNAUTHORIZED => format!(
                "{} refuses: {message}\n\
                 run this as the user who started the gateway, with the same --state-dir; or give --url, \
                 and in {TOKEN} a key with the role `viewer` or `operator`",
                self.base
            ),
            Some(message) => message.to_owned(),
            None => {
                let body = String::from_utf8_lossy(&body);
                format!("{} answered {status}: {body}", self.base)
            }
        }))
    }

    async fn send(&self, method: Method, url: &Url, body: Bytes) -> Result<Response<Body>, String> {
        let mut request = Request::builder().uri(url.as_str());
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.method(method).body(body);
        let mut request = request.map_err(|error| error.to_string())?;
        if let Some(credential) = self.credential.clone() {
            request.headers_mut().insert(AUTHORIZATION, credential);
        }
        match &self.at {
            At::Here(routes) => match routes.clone().oneshot(request.map(Body::from)).await {
                Ok(answer) => Ok(answer),
                Err(never) => match never {},
            },
            At::Elsewhere(client) => {
                let request = request.try_into().map_err(|error| cause(&error))?;
                let answer = client.execute(request).await;
                let answer = answer.map_err(|error| cause(&error))?;
                Ok(Response::from(answer).map(Body::new))
            }
        }
    }

    fn failed(&self, error: &str) -> AppError {
        AppError::Remote(format!("asking {} failed: {error}", self.base))
    }
}

async fn whole(answer: Response<Body>) -> Result<Bytes, String> {
    let body = to_bytes(answer.into_body(), usize::MAX).await;
    body.map_err(|error| cause(&error))
}

fn client(verifies: bool, socket: Option<&str>) -> Result<Client, AppError> {
    // no proxy: gateways are asked on the machine or the network they run on; and no redirect, so
    // that only the gateway gets the credential
    let mut builder = Client::builder().no_proxy().redirect(Policy::none());
    #[cfg(unix)]
    if let Some(path) = socket {
        builder = builder.unix_socket(path);
    }
    #[cfg(not(unix))]
    if socket.is_some() {
        return Err(AppError::Usage("--url: no Unix sockets here".into()));
    }
    let tls = callward_tls::client_config(verifies);
    let tls = tls.map_err(|error| AppError::Remote(error.to_string()))?;
    let built = builder.tls_backend_preconfigured(tls).build();
    built.map_err(|error| AppError::Remote(format!("no HTTP client: {error}")))
}

/// Finds the gateway that the arguments name, or else the one that is running.
///
/// # Errors
///
/// [`AppError`] if none answers, if what answers is not a gateway, or if several are running and
/// none is named.
pub(crate) async fn gateway(
    args: &args::Gateway,
    state: Option<&StateDir>,
) -> Result<(Remote, String), AppError> {
    match find(args.url.as_deref(), args.config.as_deref(), state).await? {
        (Some(remote), url) => Ok((remote, url)),
        (None, url) => Err(AppError::Remote(format!(
            "what answers at {url} is not a gateway"
        ))),
    }
}

/// The same, with its address. `None`: something else answers there.
///
/// # Errors
///
/// [`AppError`], as before, and if other users may read the gateway's token.
pub(crate) async fn find(
    url: Option<&str>,
    config: Option<&Path>,
    state: Option<&StateDir>,
) -> Result<(Option<Remote>, String), AppError> {
    let (url, given) = match url {
        // on a socket, a credential would be judged in place of the user
        Some(url) if url.starts_with("unix:") => (url.to_owned(), None),
        Some(url) => (url.to_owned(), std::env::var(TOKEN).ok().map(Token)),
        None => (address(state, config)?, None),
    };
    let token = match (given, state) {
        (None, Some(state)) => registered::token(state, &url)?,
        (given, _) => given,
    };
    Ok((Remote::find(&url, token).await?, url))
}

/// Returns the admin address of the gateway that runs with this config file, or of the only one
/// that runs. If none is registered, it is the address in the config file, or the default one.
///
/// # Errors
///
/// [`AppError`] if several gateways could be meant, or none runs with the config file, or that is
/// wrong.
fn address(state: Option<&StateDir>, config: Option<&Path>) -> Result<String, AppError> {
    let all = state.map(registered::gateways).unwrap_or_default();
    let listed: String = all.iter().map(|one| format!("\n  {one}")).collect();
    let shown = config
        .map(|file| file.display().to_string())
        .unwrap_or_default();
    let absolute = config.map(std::fs::canonicalize).transpose();
    let absolute = absolute.map_err(AppError::io(format!("--config {shown}")))?;
    let is_meant = |one: &&Gateway| absolute.is_none() || one.config == absolute;
    let with = config.map_or_else(String::new, |_| format!(" with {shown}"));
    match &all.iter().filter(is_meant).collect::<Vec<_>>()[..] {
        [only] => Ok(only.admin.clone()),
        [] if all.is_empty() => {
            let file = config.map(Path::to_owned).or_else(default_file);
            let file = file.map(|file| Config::load(&file, Servers::Any));
            let stated = file.transpose()?.and_then(|file| file.admin.listen);
            let default = config
                .is_none()
                .then_some(AdminAddress::Tcp(admin::DEFAULT));
            let is_known =
                |at: &AdminAddress| !matches!(at, AdminAddress::Tcp(at) if at.port() == 0);
            match stated.filter(is_known).or(default) {
                Some(address) => Ok(address.to_string()),
                None => Err(AppError::Remote(format!(
                    "no gateway is running{with}; start it with `callward serve --config {shown}`"
                ))),
            }
        }
        [] => Err(AppError::Remote(format!(
            "no gateway is running{with}, but others are; name one:{listed}"
        ))),
        _ => Err(AppError::Usage(format!(
            "several gateways are running{with}; name one:{listed}"
        ))),
    }
}

/// Returns the innermost cause: the outer ones only add context.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
