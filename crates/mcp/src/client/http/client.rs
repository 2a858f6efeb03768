//! The HTTP client: one for each upstream, with its own pool.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use callward_core::redact;
use http::header::{AUTHORIZATION, HOST, PROXY_AUTHORIZATION};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use url::Url;

use super::answer::AnswerBody;
use super::conn::{Conn, Unanswered};
use super::connect::{Connect, Connections, SendError};
use super::outgoing::Outgoing;
use super::pool::Pool;

/// A client of one address.
pub(super) struct Client {
    connect: Connect,
    pub(super) pool: Arc<Pool>,
    pub(super) uri: Uri,
    /// The request target, in the form that the recipient of the request expects.
    target: Uri,
    /// What every request carries: the headers of the configuration, and what follows from the
    /// address.
    pub(super) headers: HeaderMap,
}

impl Client {
    /// Builds the client.
    ///
    /// Redirects are not followed: they would send a call to an address that is not configured,
    /// some of them as a GET. Only a request that was certainly not sent is sent again: a request
    /// goes to another connection if the one it was given to had closed before it took any of it.
    ///
    /// # Errors
    ///
    /// An invalid address, an invalid proxy in the environment, or a failure of TLS.
    pub(super) fn new(
        proxies: &Matcher,
        mut url: Url,
        mut headers: HeaderMap,
        connect_timeout: Duration,
        connections: Connections,
    ) -> Result<Self, String> {
        let credentials = take_credentials(&mut url);
        let uri: Uri = url.as_str().parse().map_err(|error| {
            let url = redact::url(url.as_str());
            format!("no HTTP client: {url} cannot be asked for: {error}")
        })?;
        let tls = callward_tls::client_config(url.scheme() == "https");
        let tls = tls.map_err(|error| error.to_string())?;
        let mut connect = Connect::new(&uri, proxies, tls, connect_timeout, connections)?;
        // what is configured comes before what follows from the address
        let host = uri.authority().map(Authority::as_str).unwrap_or_default();
        let host = HeaderValue::from_str(host)
            .map_err(|_| format!("no HTTP client: the host {host:?} cannot travel in a header"))?;
        headers.entry(HOST).or_insert(host);
        if let Some(credentials) = credentials {
            headers.entry(AUTHORIZATION).or_insert(credentials);
        }
        if let Some(credentials) = connect.credentials.take() {
            headers.entry(PROXY_AUTHORIZATION).or_insert(credentials);
        }
        let mut client = Self {
            connect,
            pool: Arc::default(),
            target: Uri::default(),
            uri,
            headers,
        };
        client.target = client.target_of(client.uri.clone());
        Ok(client)
    }

    /// Returns the request target of an address at the same server.
    fn target_of(&self, uri: Uri) -> Uri {
        match self.connect.is_forwarded {
            true => uri,
            // the default is `/`
            false => uri
                .into_parts()
                .path_and_query
                .map(Uri::from)
                .unwrap_or_default(),
        }
    }

    /// Returns the request target that a server of 2024-11-05 names for messages to it.
    ///
    /// # Errors
    ///
    /// One at another server, which might get the credentials of this one.
    pub(super) fn endpoint(&self, named: &str) -> Result<Uri, String> {
        let here = Url::parse(&self.uri.to_string()).map_err(|error| error.to_string())?;
        let there = here.join(named).map_err(|error| error.to_string())?;
        let has_user = !there.username().is_empty() || there.password().is_some();
        if there.origin() != here.origin() || has_user {
            return Err(format!(
                "{} is not at {}",
                redact::url(there.as_str()),
                here.origin().ascii_serialization()
            ));
        }
        let uri: Uri = there
            .as_str()
            .parse()
            .map_err(|error: http::uri::InvalidUri| error.to_string())?;
        Ok(self.target_of(uri))
    }

    /// Returns host and port that it asks.
    pub(super) fn address(&self) -> (Option<&str>, Option<u16>) {
        let usual = match self.uri.scheme_str() {
            Some("https") => 443,
            _ => 80,
        };
        (self.uri.host(), self.uri.port_u16().or(Some(usual)))
    }

    /// Sends one request, to the client's address unless another target is given. `headers` are all
    /// of its headers, the client's own included. Dropping the future, or the answer before its
    /// end, closes the connection.
    ///
    /// # Errors
    ///
    /// [`SendError`] if there is no connection, or it breaks before the head of an answer.
    pub(super) async fn send(
        &self,
        target: Option<&Uri>,
        method: Method,
        headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Response<AnswerBody>, SendError> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target.unwrap_or(&self.target).clone();
        *request.headers_mut() = headers;
        loop {
            let (conn, is_used) = match self.pool.take() {
                Some(conn) => (conn, true),
                None => self.conn().await?,
            };
            match conn.send(request).await {
                Ok((conn, response)) => {
                    let pool = self.pool.clone();
                    return Ok(response.map(|bytes| AnswerBody::new(bytes, conn, pool)));
                }
                // a failure of an unused connection is the server's: it would fail again
                Err(Unanswered {
                    untaken: Some(same),
                    ..
                }) if is_used => request = same,
                Err(unanswered) => return Err(SendError::Broken(unanswered.cause)),
            }
        }
    }

    /// Opens a connection, or takes one that is returned meanwhile. Returns `true` if it was used
    /// before.
    async fn conn(&self) -> Result<(Box<Conn>, bool), SendError> {
        let opening = self.connect.open();
        let mut opening = Box::pin(async move {
            let (wire, permit) = opening.await?;
            let conn = Conn::over(wire, Some(permit)).await;
            conn.map_err(|error| SendError::Broken(error.into()))
        });
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return opened.map(|conn| (conn, false)),
                () = self.pool.freed.notified() => {}
            }
            if let Some(conn) = self.pool.take() {
                let pool = Arc::downgrade(&self.pool);
                tokio::spawn(async move {
                    // it was requested, so it is kept for the next request
                    if let (Ok(conn), Some(pool)) = (opening.await, pool.upgrade()) {
                        pool.put(conn);
                    }
                });
                return Ok((conn, true));
            }
        }
    }
}

/// Moves user name and password of an address into a header.
fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decoded(url.username());
    pair.push(b':');
    pair.extend(decoded(url.password().unwrap_or_default()));
    if pair == b":" {
        return None;
    }
    // only an address without a host refuses this, and each one here has a host
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let header = format!("Basic {}", BASE64_STANDARD.encode(pair));
    let mut header = HeaderValue::try_from(header).ok()?;
    header.set_sensitive(true);
    Some(header)
}
