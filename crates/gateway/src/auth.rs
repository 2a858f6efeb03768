//! `[auth]`: who may use the endpoint.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::future::ready;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use callward::telemetry::names::metric::{AUTH_REFUSALS, label};
use callward_auth::keys::{KeyFile, Keys};
use callward_auth::tokens::Tokens;
use callward_auth::{
    Authenticated, Authenticator, Challenge, Reason, Refusal, ResourceMetadata, Sender,
    TrustedProxy,
};
use callward_mcp::server::{Anonymous, Identified, Identify, Refused};
use futures_util::TryFutureExt;
use futures_util::future::Either;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use url::Url;

use crate::config::{Config, KeySource};
use crate::connections::PeerCertificate;
use crate::error::AppError;
use crate::metrics::counter;
use crate::state_dir::StateDir;

/// The name of the file of keys in the state directory.
const FILE: &str = "keys.json";

/// How often the file of keys is looked at, and in how many looks the times of use are written.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS_A_SAVE: u32 = 60;

/// What identifies the clients of the endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Auth {
    /// `None` if keys are off.
    keys: Option<Arc<Keys>>,
    authenticator: Authenticator,
    /// Whether anything but keys identifies clients.
    others: bool,
    /// What clients without a valid token read, if there are issuers.
    pub(crate) metadata: Option<ResourceMetadata>,
}

/// Returns the file of keys, by default `keys.json` in the state directory.
///
/// # Errors
///
/// [`AppError::Usage`] if there is no state directory, and one is needed.
pub(crate) fn key_file(from: &KeySource, state: Option<&StateDir>) -> Result<KeyFile, AppError> {
    let path = match (from, state) {
        (KeySource::File(path), _) => path.clone(),
        (KeySource::Standard(_), Some(state)) => state.path(FILE),
        (KeySource::Standard(_), None) => {
            return Err(AppError::Usage(
                "there is no state directory for the keys: give one with --state-dir, or set \
                 `auth.keys` to the path of a file"
                    .into(),
            ));
        }
    };
    Ok(KeyFile::new(path))
}

impl Auth {
    /// Reads what identifies clients.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the file of keys cannot be read.
    pub(crate) fn open(config: &Config, state: Option<&StateDir>) -> Result<Self, AppError> {
        let certificates = config.http.tls.client_ca.is_some();
        let config = &config.auth;
        let mut auth = Self::default();
        if config.keys.is_on() {
            let keys = Arc::new(Keys::open(key_file(&config.keys, state)?)?);
            auth.authenticator.keys = Some(keys.clone());
            auth.keys = Some(keys);
        }
        if !config.issuers.is_empty() {
            let tokens = Tokens::new(config.issuers.clone());
            let tokens = tokens.map_err(|error| AppError::Usage(error.to_string()))?;
            auth.authenticator.tokens = Some(Arc::new(tokens));
            let resource = config.resource.as_deref().unwrap_or_default();
            let issuers = config.issuers.iter().map(|one| one.issuer.clone());
            let metadata = ResourceMetadata::new(resource, "Callward", issuers.collect());
            auth.metadata = Some(metadata);
        }
        // the settings were checked with the file
        let proxy = config.proxy.as_ref().map(TrustedProxy::new);
        auth.authenticator.proxy = proxy.and_then(Result::ok);
        auth.others = !config.issuers.is_empty() || config.proxy.is_some() || certificates;
        Ok(auth)
    }

    /// Returns what identifies the sender of a request: everyone is anonymous if nothing
    /// does.
    pub(crate) fn identify(&self, refusals: &Refusals) -> Arc<dyn Identify> {
        if self.keys.is_none() && !self.others {
            return Arc::<Anonymous>::default();
        }
        let metadata = self.metadata.as_ref();
        Arc::new(Identifier {
            authenticator: self.authenticator.clone(),
            refusals: refusals.clone(),
            metadata: metadata.and_then(ResourceMetadata::url).map(Arc::new),
        })
    }

    /// Returns what verifies keys and tokens.
    pub(crate) fn authenticator(&self) -> Authenticator {
        let mut authenticator = self.authenticator.clone();
        authenticator.proxy = None;
        authenticator
    }

    /// Returns why no client can be identified yet, if that is so.
    pub(crate) fn lacks(&self) -> Option<String> {
        let keys = self.keys.as_ref().filter(|keys| keys.is_empty())?;
        if self.others {
            return None;
        }
        let path = keys.file().path().display();
        Some(format!(
            "{path} has no keys, so every client is refused; `callward keys create NAME` makes one"
        ))
    }

    /// Follows changes of the keys, and writes when they are used. Ends never.
    pub(crate) async fn watch(&self) -> Infallible {
        let Some(keys) = &self.keys else {
            return std::future::pending().await;
        };
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut reading, mut saving) = (Failing::default(), Failing::default());
        loop {
            for _ in 0..LOOKS_A_SAVE {
                looks.tick().await;
                let read = blocking(keys, Keys::refresh).await;
                if let Some(true) = reading.once(read, "keys stay as they were") {
                    tracing::info!(keys = keys.len(), "the keys have changed");
                }
            }
            saving.once(self.save().await, "times of use are not written");
        }
    }

    /// Writes when keys were used.
    pub(crate) async fn save(&self) -> Result<(), String> {
        match &self.keys {
            Some(keys) => blocking(keys, Keys::save_used).await,
            None => Ok(()),
        }
    }
}

/// Runs what reads or writes files.
async fn blocking<T: Send + 'static, E: Display + 'static>(
    keys: &Arc<Keys>,
    run: fn(&Keys) -> Result<T, E>,
) -> Result<T, String> {
    let keys = keys.clone();
    let done = tokio::task::spawn_blocking(move || run(&keys).map_err(|error| error.to_string()));
    done.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Whether a failure was logged already.
#[derive(Default)]
struct Failing(bool);

impl Failing {
    /// Returns what is there; logs a failure unless the last one failed too.
    fn once<T>(&mut self, result: Result<T, String>, so: &str) -> Option<T> {
        let was_failing = std::mem::replace(&mut self.0, result.is_err());
        result
            .inspect_err(|error| {
                if !was_failing {
                    tracing::warn!(%error, "{so}");
                }
            })
            .ok()
    }
}

struct Identifier {
    authenticator: Authenticator,
    refusals: Refusals,
    /// Where clients learn how to get a token.
    metadata: Option<Arc<Url>>,
}

impl Identify for Identifier {
    fn identify(&self, request: &Parts) -> Identified {
        let peer = request.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(peer)| peer.ip());
        let certificate = request.extensions.get::<Arc<PeerCertificate>>();
        let sender = Sender {
            headers: &request.headers,
            uri: &request.uri,
            peer,
            certificate: certificate.map(|shown| &shown.0),
        };
        let (refusals, metadata) = (self.refusals.clone(), self.metadata.clone());
        let refused = move |refusal| refusals.refuse(refusal, peer, metadata.as_deref());
        match self.authenticator.authenticate(sender) {
            Authenticated::Now(found) => Either::Left(ready(found.map_err(refused))),
            Authenticated::Later(found) => Either::Right(Box::pin(found.map_err(refused))),
        }
    }

    fn step_up(&self, _: &Parts, scopes: &str) -> Option<HeaderValue> {
        let scopes: Vec<_> = scopes.split(' ').collect();
        Some(Challenge::InsufficientScope(&scopes).header(self.metadata.as_deref()))
    }
}

/// Between two lines of the log for one reason.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// Counts refused requests by reason, and logs some.
#[derive(Debug, Clone)]
pub(crate) struct Refusals {
    counter: Counter<u64>,
    /// When a refusal for each reason is logged next, and how many were not since the last line.
    logged: Arc<Mutex<HashMap<Reason, (Instant, u64)>>>,
}

impl Refusals {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = counter(meter, AUTH_REFUSALS);
        for reason in Reason::ALL {
            // it exists before the first refusal
            counter.add(0, &[of(*reason)]);
        }
        let logged = Arc::default();
        Self { counter, logged }
    }

    /// Counts a refusal, and returns the answer to it.
    pub(crate) fn refuse(
        &self,
        refusal: Refusal,
        peer: Option<IpAddr>,
        metadata: Option<&Url>,
    ) -> Refused {
        let reason = refusal.reason;
        self.counter.add(1, &[of(reason)]);
        // with issuers, a client begins without a credential
        if reason != Reason::Missing || metadata.is_none() {
            self.log(reason, peer);
        }
        let (status, why) = match reason {
            Reason::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, None),
            Reason::Missing => (StatusCode::UNAUTHORIZED, Some(Challenge::Missing)),
            _ => (StatusCode::UNAUTHORIZED, Some(Challenge::Invalid)),
        };
        let mut refused = Refused::new(status, refusal.to_string());
        refused.challenge = why.map(|why| why.header(metadata));
        refused.retry_after = refusal.retry_after;
        refused
    }

    /// Logs the first refusal for a reason, and then one a minute.
    fn log(&self, reason: Reason, peer: Option<IpAddr>) {
        let now = Instant::now();
        let mut logged = self.logged.lock();
        let (next, unlogged) = logged.entry(reason).or_insert((now, 0));
        if now < *next {
            *unlogged += 1;
            return;
        }
        let (reason, peer) = (reason.as_str(), peer.map(tracing::field::display));
        let more = std::mem::take(unlogged);
        tracing::warn!(
            reason,
            peer,
            more,
            "a request is refused for its credential"
        );
        *next = now + LOG_PAUSE;
    }
}

fn of(reason: Reason) -> KeyValue {
    KeyValue::new(label::REASON, reason.as_str())
}
