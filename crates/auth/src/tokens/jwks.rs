//! The public keys of an issuer, fetched again when they may have changed.
//!
//! The key of a token is selected before its signature is checked, so anyone can ask for one that
//! does not exist. Fetches are therefore one at a time, [`COOL_DOWN`] apart after a success, and
//! limited for all issuers together. Keys are replaced by what the issuer states, and else stay.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use url::Url;

use super::config::is_secure;
use super::http::{Ask, Http};
use super::jwt::Jwt;
use super::key::Key;
use super::unavailable;
use crate::{Reason, Refusal};

/// After a fetch from one issuer, and the most after failures.
pub(super) const COOL_DOWN: Duration = Duration::from_secs(30);
/// After a first failure; it doubles with each further one.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// Older keys are fetched again: the issuer may have withdrawn one.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);
/// For a fetch as a whole.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BODY: usize = 1 << 20;

/// A bucket of fetches, for all issuers together.
pub(super) struct Bucket(Mutex<Option<Instant>>);

impl Bucket {
    /// One fetch is added after this time.
    const EVERY: Duration = Duration::from_secs(3);
    /// How many may be saved up, as the time they take to be added.
    const BURST: Duration = Duration::from_secs(3 * 20);

    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn take(&self) -> bool {
        let now = Instant::now();
        let mut full = self.0.lock();
        let next = full.map_or(now, |full| full.max(now)) + Self::EVERY;
        let permitted = next - now <= Self::BURST;
        if permitted {
            *full = Some(next);
        }
        permitted
    }
}

/// The keys of one issuer.
pub(super) struct Jwks {
    issuer: String,
    /// Where the keys are, if it is configured.
    url: Option<Url>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Arc<Vec<Key>>,
    /// When the keys were fetched last, with success.
    fetched: Option<Instant>,
    /// Not before this time is fetched again.
    next: Option<Instant>,
    /// How long is waited after the last failure; zero after a success.
    pause: Duration,
    /// Closed when the running fetch has ended.
    running: Option<watch::Receiver<()>>,
}

impl State {
    fn running(&self) -> Option<&watch::Receiver<()>> {
        let running = self.running.as_ref();
        running.filter(|fetch| fetch.has_changed().is_ok())
    }
}

impl Jwks {
    pub(super) fn new(issuer: &str, url: Option<Url>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            url,
            state: Mutex::default(),
        }
    }

    /// Checks the signature with the keys that are known now.
    pub(super) fn verify(&self, jwt: &Jwt) -> Result<(), Reason> {
        let keys = self.state.lock().keys.clone();
        Key::select(&keys, jwt)?.verify(jwt)
    }

    /// Returns `true` if the keys should be fetched: because of a `miss` of a key, or of their age.
    pub(super) fn is_due(&self, miss: bool) -> bool {
        let (state, now) = (self.state.lock(), Instant::now());
        if state.running().is_some() {
            return miss;
        }
        let is_old = || state.fetched.is_none_or(|at| now - at >= MAX_AGE);
        state.next.is_none_or(|next| now >= next) && (miss || is_old())
    }

    /// Starts a fetch, or joins the running one, and returns what is closed when it has ended.
    /// `None` if no fetch is permitted now. A fetch goes on when no one waits for it any longer.
    pub(super) fn refresh(
        self: &Arc<Self>,
        http: &Arc<dyn Http>,
        bucket: &Bucket,
    ) -> Option<watch::Receiver<()>> {
        let (mut state, now) = (self.state.lock(), Instant::now());
        if let Some(running) = state.running() {
            return Some(running.clone());
        }
        if state.next.is_some_and(|next| now < next) || !bucket.take() {
            return None;
        }
        let (ends, running) = watch::channel(());
        state.running = Some(running.clone());
        drop(state);
        let (this, http) = (self.clone(), http.clone());
        tokio::spawn(async move {
            let fetched = timeout(TIMEOUT, this.fetch(&*http)).await;
            this.store(fetched.unwrap_or_else(|_| Err("it does not answer".to_owned())));
            drop(ends);
        });
        Some(running)
    }

    fn store(&self, fetched: Result<Vec<Key>, String>) {
        let (mut state, now) = (self.state.lock(), Instant::now());
        match fetched {
            Ok(keys) => {
                state.next = Some(now + COOL_DOWN);
                state.pause = Duration::ZERO;
                state.keys = Arc::new(keys);
                state.fetched = Some(now);
            }
            Err(error) => {
                state.pause = (2 * state.pause).clamp(AGAIN, COOL_DOWN);
                state.next = Some(now + state.pause);
                let issuer = &self.issuer;
                tracing::warn!(%issuer, %error, "the keys of an issuer cannot be fetched");
            }
        }
    }

    /// Returns the refusal for a reason. A key is unknown only if the issuer was asked for it.
    pub(super) fn refusal(&self, reason: Reason) -> Refusal {
        let state = self.state.lock();
        if reason != Reason::UnknownKeyId || (state.fetched.is_some() && state.pause.is_zero()) {
            return reason.into();
        }
        let wait = state
            .next
            .and_then(|next| next.checked_duration_since(Instant::now()));
        // a fetch is permitted, but the bucket was empty
        unavailable(wait.unwrap_or(Bucket::EVERY))
    }

    async fn fetch(&self, http: &dyn Http) -> Result<Vec<Key>, String> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => self.discover(http).await?,
        };
        Key::read_all(&get(http, url).await?)
    }

    /// Finds the address of the keys in the issuer's metadata.
    async fn discover(&self, http: &dyn Http) -> Result<Url, String> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let base = Url::parse(&self.issuer).map_err(|error| error.to_string())?;
        let path = base.path().trim_end_matches('/');
        let mut failed = String::new();
        // RFC 8414, then OpenID Connect: as RFC 8414 has it, and as it was before
        for known in [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ] {
            let mut url = base.clone();
            url.set_path(&known);
            let read = get(http, url).await.and_then(|body| {
                let read = serde_json::from_slice::<Metadata>(&body);
                read.map_err(|_| "its metadata has no `issuer` or no `jwks_uri`".to_owned())
            });
            failed = match read {
                Ok(found) if found.issuer != self.issuer => {
                    "its metadata is that of another issuer".to_owned()
                }
                Ok(found) => match Url::parse(&found.jwks_uri) {
                    Ok(url) if is_secure(&url, base.scheme() == "http") => return Ok(url),
                    _ => "its metadata has a `jwks_uri` that is not https".to_owned(),
                },
                Err(error) => error,
            };
        }
        Err(failed)
    }
}

async fn get(http: &dyn Http, url: Url) -> Result<Vec<u8>, String> {
    let ask = Ask {
        url,
        limit: MAX_BODY,
        post: None,
    };
    http.send(ask).await
}
