//! The settings of affinity, and their validation.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use callward_core::refine::ArgumentPath;
use callward_core::{InvalidConfig, InvalidValue, WithoutSession};
use serde::{Deserialize, Serialize};

/// The affinity key, and how long it is remembered.
///
/// ```
/// use std::time::Duration;
/// use callward_router::affinity::{AffinityConfig, AffinityKey};
///
/// let mut config = AffinityConfig::default();
/// config.by = "/account/id".parse()?;
/// config.ttl = Duration::from_secs(600);
/// assert_eq!(config.validate(), Ok(()));
/// assert_eq!(AffinityConfig::default().by, AffinityKey::Session);
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AffinityConfig {
    /// What calls are kept together by. Default: [`AffinityKey::Session`].
    pub by: AffinityKey,
    /// How long after its last call a key is forgotten. Each call restarts this time. From 1 s to 7
    /// days. Default: 30 min.
    #[serde(with = "callward_core::human::duration")]
    pub ttl: Duration,
    /// How calls without a session are treated, if the key is the session. Default:
    /// [`WithoutSession::Pass`].
    pub without_session: WithoutSession,
}

/// What calls are kept together by.
///
/// In configuration a text: `"session"`, `"user"`, or a JSON Pointer into the arguments, as
/// `"/account/id"`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum AffinityKey {
    /// The caller's session: one conversation of one client.
    #[default]
    Session,
    /// The principal on whose behalf the call is made.
    User,
    /// The argument at this place. A call that has none there, or `null`, has no key.
    Argument(ArgumentPath),
}

impl Default for AffinityConfig {
    fn default() -> Self {
        Self {
            by: AffinityKey::default(),
            ttl: Duration::from_secs(30 * 60),
            without_session: WithoutSession::default(),
        }
    }
}

impl AffinityConfig {
    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if self.ttl < SHORTEST {
            return fault("ttl", "is below 1 s, which keeps nothing together");
        }
        if self.ttl > LONGEST {
            return fault(
                "ttl",
                "is above 7 days; new servers would get no calls of keys in use for ever",
            );
        }
        Ok(())
    }
}

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl FromStr for AffinityKey {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "session" => return Ok(Self::Session),
            "user" => return Ok(Self::User),
            _ => {}
        }
        // a plain name might be a word that is misspelt
        let path = text.starts_with('/').then(|| ArgumentPath::new(text).ok());
        path.flatten().map(Self::Argument).ok_or_else(|| {
            InvalidValue::new(format!(
                "{text:?} is nothing to keep calls together by: expected session, user, or a JSON \
                 Pointer into the arguments, as /account/id, with ~0 for ~ and ~1 for / within a \
                 name"
            ))
        })
    }
}

impl TryFrom<String> for AffinityKey {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        text.parse()
    }
}

impl From<AffinityKey> for String {
    fn from(key: AffinityKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for AffinityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session => f.write_str("session"),
            Self::User => f.write_str("user"),
            Self::Argument(path) => {
                let tokens = path.tokens().iter();
                tokens
                    .map(|token| token.replace('~', "~0").replace('/', "~1"))
                    .try_for_each(|token| write!(f, "/{token}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for text in ["session", "user", "/account/id", "/", "/a~1b/~0"] {
            let key: AffinityKey = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<AffinityKey>(&json).unwrap(), key);
        }
        let name = AffinityKey::Argument(ArgumentPath::new("a/b").unwrap());
        assert_eq!(name.to_string(), "/a~1b");
    }

    #[test]
    fn what_names_no_key_is_refused_with_what_is_expected() {
        for text in ["", "sesion", "Session", "account", "/a~2", "principal"] {
            let fault = text.parse::<AffinityKey>().unwrap_err().to_string();
            assert!(fault.contains(&format!("{text:?}")), "{fault}");
            assert!(
                fault.contains("session, user, or a JSON Pointer"),
                "{fault}"
            );
        }
    }
}
