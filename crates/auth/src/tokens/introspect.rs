//! Asks an issuer what an opaque token stands for (RFC 7662).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use callward_core::{Caller, CredentialKind};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

use super::config::{IntrospectionConfig, InvalidIssuer, IssuerConfig, Secret};
use super::http::{Ask, Http, Post};
use super::jwks::TIMEOUT;
use super::jwt::object;
use super::known::{Digest, Known};
use super::{claims, now, unavailable};
use crate::{Reason, Refusal};

/// An active token may be revoked meanwhile.
const KEEP_ACTIVE: Duration = Duration::from_secs(60);
const KEEP_INACTIVE: Duration = Duration::from_secs(10);
const MAX_BODY: usize = 64 << 10;
/// How many tokens the issuer is asked about at a time: anyone can send unknown ones.
pub(super) const MAX_RUNNING: usize = 32;
/// After this time another may be asked about.
const BUSY: Duration = Duration::from_secs(1);

type Answer = Result<Arc<Caller>, Refusal>;
type Running = watch::Receiver<Option<Answer>>;

/// The endpoint of an issuer.
pub(super) struct Introspection {
    issuer: Arc<IssuerConfig>,
    url: Url,
    /// The content type and the credentials.
    headers: HeaderMap,
    inactive: Known<()>,
    running: Mutex<HashMap<Digest, Running>>,
    /// Whether the last request failed; the first failure in a row is logged.
    failed: AtomicBool,
}

impl Introspection {
    pub(super) fn new(
        issuer: &Arc<IssuerConfig>,
        config: &IntrospectionConfig,
    ) -> Result<Self, InvalidIssuer> {
        // RFC 6749, section 2.3.1: encoded twice
        let encoded =
            |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
        let (user, password) = (&config.client_id, config.client_secret.reveal());
        let pair = format!("{}:{}", encoded(user), encoded(password));
        let basic = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
        let mut basic =
            basic.map_err(|_| issuer.invalid("`introspection.client_id` is too long"))?;
        basic.set_sensitive(true);
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        Ok(Self {
            issuer: issuer.clone(),
            url: issuer.url("introspection.url", &config.url)?,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, form), (AUTHORIZATION, basic)]),
            inactive: Known::new(KEEP_INACTIVE),
            running: Mutex::default(),
            failed: AtomicBool::new(false),
        })
    }

    /// Returns `true` if the issuer said so a moment ago.
    pub(super) fn is_inactive(&self, digest: &Digest) -> bool {
        self.inactive.get(digest).is_some()
    }

    /// Asks, or joins who asks about the same token.
    pub(super) async fn verify(
        self: Arc<Self>,
        http: Arc<dyn Http>,
        known: Arc<Known<Arc<Caller>>>,
        digest: Digest,
        token: Secret,
    ) -> Answer {
        let mut running = {
            let mut all = self.running.lock();
            all.retain(|_, one| one.has_changed().is_ok());
            match all.get(&digest) {
                Some(running) => running.clone(),
                None if all.len() >= MAX_RUNNING => return Err(unavailable(BUSY)),
                None => {
                    let (ends, running) = watch::channel(None);
                    all.insert(digest, running.clone());
                    let this = self.clone();
                    // goes on when the caller leaves: others may wait for it
                    tokio::spawn(async move {
                        let answer = this.ask(&*http, &known, digest, &token).await;
                        ends.send_replace(Some(answer));
                    });
                    running
                }
            }
        };
        let answer = running.wait_for(Option::is_some).await;
        let answer = answer.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| Err(unavailable(BUSY)))
    }

    async fn ask(
        &self,
        http: &dyn Http,
        known: &Known<Arc<Caller>>,
        digest: Digest,
        token: &Secret,
    ) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token.reveal())
            .append_pair("token_type_hint", "access_token")
            .finish();
        let ask = Ask {
            url: self.url.clone(),
            limit: MAX_BODY,
            post: Some(Post {
                headers: self.headers.clone(),
                body,
            }),
        };
        let answer = timeout(TIMEOUT, http.send(ask)).await;
        let answer = answer.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        let read = answer.and_then(|body| {
            let claims = object(&body).ok();
            let active = claims
                .as_ref()
                .and_then(|claims| claims.get("active")?.as_bool());
            claims
                .zip(active)
                .ok_or_else(|| "its answer does not say `active`".to_owned())
        });
        let failed = read.is_err();
        let failed_before = self.failed.swap(failed, Ordering::Relaxed);
        match read {
            Ok((_, false)) => {
                self.inactive.keep(digest, (), KEEP_INACTIVE);
                Err(Reason::Inactive.into())
            }
            Ok((claims, true)) => {
                let now = now();
                let caller = claims::caller(&self.issuer, CredentialKind::Opaque, &claims, now)?;
                Ok(known.keep_caller(digest, caller, KEEP_ACTIVE, now))
            }
            Err(error) => {
                if !failed_before {
                    let issuer = &self.issuer.issuer;
                    tracing::warn!(%issuer, %error, "an issuer cannot be asked about tokens");
                }
                Err(unavailable(BUSY))
            }
        }
    }
}
