//! Verifies tokens of OAuth issuers: JWTs with the issuer's public keys, opaque ones by asking it.
//!
//! A token is an issuer's only if it names one that is configured, and exactly: nothing else is
//! ever fetched. What a token says counts only after its signature was verified, with a key of that
//! issuer and an algorithm that this key is for.

mod claims;
pub(crate) mod config;
mod crypto;
pub(crate) mod http;
mod introspect;
mod jwks;
pub(crate) mod jwt;
mod key;
pub(crate) mod known;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Caller, CredentialKind};

pub use self::config::{IntrospectionConfig, InvalidIssuer, IssuerConfig, Secret};
use self::http::{Client, Http};
use self::introspect::Introspection;
use self::jwks::{Bucket, Jwks};
use self::jwt::Jwt;
use self::known::{Digest, Known, digest_of};
use crate::authenticator::now;
use crate::{Authenticated, MAX_CREDENTIAL, Reason, Refusal, VerifyToken};

/// How long a verified token is remembered, unless it expires sooner.
const KEEP: Duration = Duration::from_secs(5 * 60);

/// Verifies the tokens of some issuers. Clones are the same.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    issuers: HashMap<String, Issuer>,
    introspection: Option<Arc<Introspection>>,
    http: Arc<dyn Http>,
    bucket: Bucket,
    known: Arc<Known<Arc<Caller>>>,
}

struct Issuer {
    config: Arc<IssuerConfig>,
    jwks: Arc<Jwks>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokens")
            .field(&self.0.issuers.keys())
            .finish()
    }
}

impl VerifyToken for Tokens {
    fn verify(&self, token: &str, peer: Option<IpAddr>) -> Authenticated {
        if token.len() > MAX_CREDENTIAL {
            return Reason::TooLong.into();
        }
        let digest = digest_of(token);
        if let Some(caller) = self.0.known.get(&digest) {
            return Authenticated::Now(Ok(caller));
        }
        match Jwt::read(token) {
            Ok(Some(jwt)) => self.verify_jwt(jwt, digest),
            Ok(None) => self.verify_opaque(token, digest, peer),
            Err(reason) => reason.into(),
        }
    }
}

impl Tokens {
    /// Trusts these issuers. Nothing is fetched before the first token.
    ///
    /// # Errors
    ///
    /// [`InvalidIssuer`] if a setting of one cannot be used, two are the same, or two have
    /// `introspection`; or if this process verifies JWTs elsewhere, with other cryptography.
    pub fn new(issuers: Vec<IssuerConfig>) -> Result<Self, InvalidIssuer> {
        // machines without any certificate can use plain HTTP
        let is_plain = |text: &String| text.starts_with("http:");
        let verifies = issuers.iter().any(|issuer| {
            let asked = issuer.introspection.as_ref().map(|asked| &asked.url);
            let others = issuer.jwks_url.iter().chain(asked);
            !(is_plain(&issuer.issuer) && others.clone().all(is_plain))
        });
        let client = Client::build(verifies).map_err(|reason| {
            let issuer = issuers.first().map(|one| one.issuer.clone());
            let issuer = issuer.unwrap_or_default();
            InvalidIssuer { issuer, reason }
        })?;
        Self::with(issuers, Arc::new(client))
    }

    fn with(configs: Vec<IssuerConfig>, http: Arc<dyn Http>) -> Result<Self, InvalidIssuer> {
        let (mut issuers, mut introspection) = (HashMap::new(), None);
        let known = Arc::new(Known::new(KEEP));
        for config in configs {
            if let Some((_, fault)) = config.faults().into_iter().next() {
                return Err(fault);
            }
            if !crypto::install() {
                return Err(config.invalid(
                    "its tokens cannot be verified: this process has installed another \
                     `CryptoProvider` of `jsonwebtoken`; leave that to this crate",
                ));
            }
            let jwks_url = config.jwks_url.as_ref();
            let jwks_url = jwks_url.map(|url| config.url("jwks_url", url));
            let jwks = Arc::new(Jwks::new(&config.issuer, jwks_url.transpose()?));
            let config = Arc::new(config);
            if let Some(settings) = &config.introspection {
                let this = Introspection::new(&config, settings, &http, &known)?;
                if introspection.replace(Arc::new(this)).is_some() {
                    // a token does not say whom to ask, and one must not learn the other's
                    return Err(config.invalid("a second issuer must not have `introspection`"));
                }
            }
            let name = config.issuer.clone();
            if let Some(Issuer { config, .. }) = issuers.insert(name, Issuer { config, jwks }) {
                return Err(config.invalid("it is configured twice; give it one list of audiences"));
            }
        }
        Ok(Self(Arc::new(Inner {
            issuers,
            introspection,
            http,
            bucket: Bucket::new(),
            known,
        })))
    }

    fn verify_jwt(&self, jwt: Jwt, digest: Digest) -> Authenticated {
        let issuer = jwt.issuer().and_then(|name| self.0.issuers.get(name));
        let Some(Issuer { config, jwks }) = issuer else {
            return Reason::Issuer.into();
        };
        let result = self.0.check(config, jwks, &jwt, digest);
        // an issuer may also have replaced a key, by one of another kind even, without another id
        let is_miss = matches!(
            result,
            Err(Reason::UnknownKeyId | Reason::Signature | Reason::Algorithm)
        );
        if !jwks.is_due(is_miss) {
            return Authenticated::Now(result.map_err(|reason| jwks.refusal(reason)));
        }
        let (inner, config, jwks) = (self.0.clone(), config.clone(), jwks.clone());
        Authenticated::Later(Box::pin(async move {
            let fetch = jwks.refresh(&inner.http, &inner.bucket);
            if !is_miss {
                return result.map_err(|reason| jwks.refusal(reason));
            }
            if let Some(mut fetch) = fetch {
                // an error says that it has ended
                while fetch.changed().await.is_ok() {}
            }
            let result = inner.check(&config, &jwks, &jwt, digest);
            result.map_err(|reason| jwks.refusal(reason))
        }))
    }

    fn verify_opaque(&self, token: &str, digest: Digest, peer: Option<IpAddr>) -> Authenticated {
        let Some(introspection) = &self.0.introspection else {
            return Reason::Malformed.into();
        };
        if introspection.is_inactive(&digest) {
            return Reason::Inactive.into();
        }
        let (asks, token) = (introspection.clone(), Secret::new(token));
        Authenticated::Later(Box::pin(asks.verify(digest, token, peer)))
    }
}

impl Inner {
    fn check(
        &self,
        config: &IssuerConfig,
        jwks: &Jwks,
        jwt: &Jwt,
        digest: Digest,
    ) -> Result<Arc<Caller>, Reason> {
        jwks.verify(jwt)?;
        let now = now();
        let caller = claims::caller(config, CredentialKind::Jwt, &jwt.claims, now)?;
        Ok(self.known.keep_caller(digest, caller, KEEP, now))
    }
}

/// A token cannot be checked now, but may be after this time.
fn unavailable(after: Duration) -> Refusal {
    Refusal {
        reason: Reason::Unavailable,
        retry_after: Some(after),
    }
}
