//! Which issuers are trusted, and for what.

use std::fmt;
use std::time::Duration;

use callward_core::human;
use serde::{Deserialize, Serialize, Serializer};
use url::{Host, Url};

/// More would keep tokens valid that have long expired.
const MAX_LEEWAY: Duration = Duration::from_secs(10 * 60);

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config, built by its fields")]
pub struct IssuerConfig {
    /// The issuer, exactly as in `iss` and in its metadata: an HTTPS URL, or HTTP on loopback.
    pub issuer: String,
    /// Tokens for any of these audiences are accepted; usually the URL of the endpoint.
    pub audience: Vec<String>,
    /// Where its public keys are. Default: found through its metadata.
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// How far its clock may differ from ours, at most 10 minutes. Default: `60s`.
    #[serde(default = "default_leeway", with = "human::duration")]
    pub leeway: Duration,
    /// Claims that a token must have besides `iss`, `aud`, `sub` and `exp`.
    #[serde(default)]
    pub required: Vec<String>,
    /// The claim with the roles: a list, or words in a string. A name, or a path such as
    /// `realm_access.roles`. Default: callers have no roles.
    #[serde(default)]
    pub roles_claim: Option<String>,
    /// How the issuer is asked about tokens that are not JWTs. Default: they are refused.
    #[serde(default)]
    pub introspection: Option<IntrospectionConfig>,
}

fn default_leeway() -> Duration {
    Duration::from_secs(60)
}

/// The endpoint that describes a token (RFC 7662).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config, built by its fields")]
pub struct IntrospectionConfig {
    /// Its URL: HTTPS, or HTTP on loopback.
    pub url: String,
    /// As whom the gateway asks.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: Secret,
}

/// A text that `Debug` does not show, and that is serialized as `[redacted]`.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[redacted]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A setting of an issuer that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("issuer {issuer:?}: {reason}")]
#[non_exhaustive]
pub struct InvalidIssuer {
    /// The issuer.
    pub issuer: String,
    /// Which setting, why, and what is expected.
    pub reason: String,
}

impl IssuerConfig {
    pub(super) fn invalid(&self, reason: impl Into<String>) -> InvalidIssuer {
        InvalidIssuer {
            issuer: self.issuer.clone(),
            reason: reason.into(),
        }
    }

    /// Returns each setting that cannot be used, by its name, whatever other issuers there are.
    #[must_use]
    pub fn faults(&self) -> Vec<(&'static str, InvalidIssuer)> {
        let asked = self.introspection.as_ref();
        let urls = [
            ("issuer", Some(&self.issuer)),
            ("jwks_url", self.jwks_url.as_ref()),
            ("introspection.url", asked.map(|asked| &asked.url)),
        ];
        let urls = urls.into_iter();
        let urls = urls.filter_map(|(key, text)| Some((key, self.url(key, text?).err()?)));
        let has_audience = !self.audience.is_empty() && !self.audience.iter().any(String::is_empty);
        let has_client = asked.is_none_or(|asked| !asked.client_id.is_empty());
        let leeway = human::show_duration(self.leeway);
        let leeway = format!("`leeway` is {leeway}; at most 10m is permitted");
        #[rustfmt::skip]
        let rules = [
            ("issuer", !self.issuer.contains(['?', '#']),
             "`issuer` must have no query and no fragment"),
            ("audience", has_audience,
             "`audience` must name at least one audience, such as the URL of the endpoint: without \
              it, tokens for other services would be accepted"),
            ("leeway", self.leeway <= MAX_LEEWAY, &leeway),
            ("introspection.client_id", has_client, "`introspection.client_id` must not be empty"),
        ];
        let broken = rules.into_iter().filter(|(_, holds, _)| !holds);
        let broken = broken.map(|(key, _, reason)| (key, self.invalid(reason)));
        urls.chain(broken).collect()
    }

    /// Reads the address of something that the issuer serves.
    pub(super) fn url(&self, field: &str, text: &str) -> Result<Url, InvalidIssuer> {
        secure_url(field, text).map_err(|reason| self.invalid(reason))
    }
}

/// Reads the address of a service that is trusted.
pub(crate) fn secure_url(field: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok();
    url.filter(|url| is_secure(url, true)).ok_or_else(|| {
        format!("`{field}` must be an https URL without credentials, or http on loopback")
    })
}

/// Returns `true` for HTTPS, and for plain HTTP to this machine if that is permitted.
pub(super) fn is_secure(url: &Url, permits_loopback: bool) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    };
    let is_plain = url.scheme() == "http" && is_loopback && permits_loopback;
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    (url.scheme() == "https" || is_plain) && !has_credentials
}
