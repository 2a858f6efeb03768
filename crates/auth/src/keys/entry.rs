//! What a file has of each key.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, SystemTime};

use callward_core::{Caller, Credential, CredentialKind, Principal};
use serde::{Deserialize, Serialize};

use super::secret::KeyHash;

/// A time, in files as `2026-11-26T12:00:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(SystemTime);

impl Timestamp {
    /// The last second of the year 9999: a later one has no text.
    const LAST: u64 = 253_402_300_799;

    /// Returns the time of the wall clock.
    #[must_use]
    pub fn now() -> Self {
        Self::new(crate::authenticator::now())
    }

    /// Returns a time in whole seconds, from 1970 to the year 9999.
    #[must_use]
    pub fn new(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        Self::of_seconds(since.unwrap_or_default().as_secs())
    }

    pub(super) fn of_seconds(seconds: u64) -> Self {
        let since = Duration::from_secs(seconds.min(Self::LAST));
        Self(SystemTime::UNIX_EPOCH + since)
    }

    /// Returns the seconds since 1970.
    pub(super) fn seconds(self) -> u64 {
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }

    /// Returns the time as the system has it.
    #[must_use]
    pub fn time(self) -> SystemTime {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_seconds(self.0).fmt(f)
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let time = humantime::parse_rfc3339(&text);
        time.map(Self::new)
            .map_err(|_| "expected a time such as 2026-11-26T12:00:00Z")
    }
}

/// What a key is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewKey {
    /// Its name for people. No other valid key may have it.
    pub name: String,
    /// The roles of its callers. Default: none.
    pub roles: BTreeSet<String>,
    /// The scopes that it is limited to. Default: `None`, it is not limited.
    pub scopes: Option<BTreeSet<String>>,
    /// When it stops being valid. Default: never.
    pub expires: Option<SystemTime>,
}

/// What is known of a key; the key itself is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyEntry {
    /// The public name of the key, unique in its file: the principal is `key#ID`.
    pub id: String,
    /// A name for people.
    pub name: String,
    pub(super) sha256: KeyHash,
    /// The roles of its callers.
    pub roles: BTreeSet<String>,
    /// The scopes that it is limited to; `None` if it is not limited.
    pub scopes: Option<BTreeSet<String>>,
    /// When it was created.
    pub created: Timestamp,
    /// When it stops being valid, if ever.
    pub expires: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked: Option<Timestamp>,
}

impl KeyEntry {
    /// Returns `true` if the key has this name or id.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.id == name || self.name == name
    }

    /// Returns the caller that shows this key.
    pub(super) fn caller(&self) -> Caller {
        let mut credential = Credential::default();
        credential.kind = CredentialKind::ApiKey;
        credential.name = Some(self.name.clone());
        credential.roles.clone_from(&self.roles);
        credential.scopes.clone_from(&self.scopes);
        credential.expires = self.expires.map(Timestamp::time);
        Caller::new(Principal::of("key", &self.id)).with_credential(credential)
    }
}
