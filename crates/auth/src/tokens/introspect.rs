//! Asks an issuer what an opaque token stands for (RFC 7662).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use callward_core::{BoxFuture, Caller, CredentialKind};
use futures_util::FutureExt;
use futures_util::future::Shared;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
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

/// A question that is not answered yet.
struct Running {
    /// The network that asked first, if that is known.
    from: Option<IpAddr>,
    task: AbortHandle,
    answer: Shared<BoxFuture<'static, Answer>>,
}

/// The endpoint of an issuer.
pub(super) struct Introspection {
    issuer: Arc<IssuerConfig>,
    url: Url,
    /// The content type and the credentials.
    headers: HeaderMap,
    http: Arc<dyn Http>,
    known: Arc<Known<Arc<Caller>>>,
    inactive: Known<()>,
    running: Mutex<HashMap<Digest, Running>>,
    /// Whether the last request failed; the first failure in a row is logged.
    failed: AtomicBool,
}

impl Introspection {
    pub(super) fn new(
        issuer: &Arc<IssuerConfig>,
        config: &IntrospectionConfig,
        http: &Arc<dyn Http>,
        known: &Arc<Known<Arc<Caller>>>,
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
            http: http.clone(),
            known: known.clone(),
            inactive: Known::new(KEEP_INACTIVE),
            running: Mutex::default(),
            failed: AtomicBool::new(false),
        })
    }

    /// Returns `true` if the issuer said so a moment ago.
    pub(super) fn is_inactive(&self, digest: &Digest) -> bool {
        self.inactive.get(digest).is_some()
    }

    /// Asks, or joins who asks about the same token. `peer` is who shows it.
    pub(super) async fn verify(
        self: Arc<Self>,
        digest: Digest,
        token: Secret,
        peer: Option<IpAddr>,
    ) -> Answer {
        match self.join(digest, token, peer.map(network)) {
            Some(answer) => answer.await,
            None => Err(busy()),
        }
    }

    /// Returns the answer that will be there; `None` if too many tokens are asked about.
    fn join(
        self: &Arc<Self>,
        digest: Digest,
        token: Secret,
        from: Option<IpAddr>,
    ) -> Option<Shared<BoxFuture<'static, Answer>>> {
        let mut all = self.running.lock();
        all.retain(|_, one| !one.task.is_finished());
        if let Some(one) = all.get(&digest) {
            return Some(one.answer.clone());
        }
        if all.len() >= MAX_RUNNING {
            give_up_one(&mut all, from)?;
        }
        let this = self.clone();
        // goes on when the caller leaves: others may wait for it
        let asked = tokio::spawn(async move { this.ask(digest, &token).await });
        let task = asked.abort_handle();
        let answer = asked.map(|answer| answer.unwrap_or_else(|_| Err(busy())));
        let answer = answer.boxed().shared();
        let one = Running {
            from,
            task,
            answer: answer.clone(),
        };
        all.insert(digest, one);
        Some(answer)
    }

    async fn ask(&self, digest: Digest, token: &Secret) -> Answer {
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
        let answer = timeout(TIMEOUT, self.http.send(ask)).await;
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
        let failed_before = self.failed.swap(read.is_err(), Ordering::Relaxed);
        match read {
            Ok((_, false)) => {
                self.inactive.keep(digest, (), KEEP_INACTIVE);
                Err(Reason::Inactive.into())
            }
            Ok((claims, true)) => {
                let now = now();
                let caller = claims::caller(&self.issuer, CredentialKind::Opaque, &claims, now)?;
                Ok(self.known.keep_caller(digest, caller, KEEP_ACTIVE, now))
            }
            Err(error) => {
                if !failed_before {
                    let issuer = &self.issuer.issuer;
                    tracing::warn!(%issuer, %error, "an issuer cannot be asked about tokens");
                }
                Err(busy())
            }
        }
    }
}

fn busy() -> Refusal {
    unavailable(BUSY)
}

/// Returns what one client can be assumed to have: of IPv6 a whole network.
fn network(peer: IpAddr) -> IpAddr {
    let peer = peer.to_canonical();
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() >> 64 << 64).into(),
    }
}

/// Ends a question of the network that has the most, for one that has fewer. `None` if it has not:
/// no client can keep the others out, and one alone may have all.
fn give_up_one(all: &mut HashMap<Digest, Running>, from: Option<IpAddr>) -> Option<()> {
    let mut counts = HashMap::from([(from, 1)]);
    for one in all.values() {
        *counts.entry(one.from).or_default() += 1;
    }
    let own = counts.get(&from).copied();
    let (most, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    if Some(count) == own {
        return None;
    }
    let digest = all
        .iter()
        .find(|(_, one)| one.from == most)
        .map(|(digest, _)| *digest)?;
    all.remove(&digest).map(|one| one.task.abort())
}
