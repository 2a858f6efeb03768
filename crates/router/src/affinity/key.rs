//! The affinity key of a call, as one number.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use callward_core::{FingerprintKey, ToolCall, WithoutSession};
use serde::{Serialize, Serializer};

use super::rendezvous::fold;
use super::{AffinityConfig, AffinityKey, argument};

/// A key in events: eight hexadecimal digits that reveal no session, user or argument.
///
/// Two of one process are equal if their keys are; different keys share one with a chance of one in
/// four billion. Those of another process, or after a restart, cannot be compared: they are made by
/// SipHash with a secret that is drawn each time, so that no name can be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest(pub(super) u32);

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl Serialize for KeyDigest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Finds the keys of calls.
#[derive(Debug)]
pub(crate) struct Keys {
    by: AffinityKey,
    without_session: WithoutSession,
    /// Seeded in each process: keys come from strangers, and none must make the table slow.
    places: RandomState,
    /// For the digests in events.
    secret: RandomState,
}

/// The kind and value of a key.
#[derive(Debug, Hash)]
pub(crate) enum Key<'a> {
    /// With the principal: two principals may have sessions of the same name.
    Session {
        principal: &'a str,
        session: &'a str,
    },
    User(&'a str),
    Argument(u128),
}

impl Keys {
    pub(crate) fn new(config: &AffinityConfig) -> Self {
        Self {
            by: config.by.clone(),
            without_session: config.without_session,
            places: RandomState::new(),
            secret: RandomState::new(),
        }
    }

    /// Returns the key of a call; `None` if it has none.
    pub(crate) fn of<'a>(&self, call: &'a ToolCall) -> Option<Key<'a>> {
        let caller = call.caller();
        let principal = caller.principal.as_str();
        match &self.by {
            AffinityKey::Session => match &caller.session {
                Some(session) => Some(Key::Session {
                    principal,
                    session: session.as_str(),
                }),
                None => match self.without_session {
                    WithoutSession::ByPrincipal => Some(Key::User(principal)),
                    WithoutSession::Pass => None,
                },
            },
            AffinityKey::User => Some(Key::User(principal)),
            AffinityKey::Argument(path) => path
                .find(call.arguments())
                .and_then(argument::digest)
                .map(Key::Argument),
        }
    }

    /// Returns where a key is remembered for the replica set of a call. It changes with each
    /// process.
    pub(crate) fn place(&self, key: &Key<'_>, call: &ToolCall) -> u64 {
        self.places.hash_one((call.tool().set().as_str(), key))
    }

    /// Returns the digest of a key for events.
    pub(crate) fn event_digest(&self, key: &Key<'_>) -> KeyDigest {
        // half of a uniform hash is a uniform hash
        KeyDigest(self.secret.hash_one(key) as u32)
    }
}

impl Key<'_> {
    /// Returns of which kind it is, in a word.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::User(_) => "user",
            Self::Argument(_) => "argument",
        }
    }

    /// Returns what servers are ranked by: the same in every process and release.
    pub(crate) fn digest(&self) -> u64 {
        let key = FingerprintKey::fixed();
        let digest = |name: &str| key.bytes(name.as_bytes());
        let parts = match self {
            Self::Session { principal, session } => [1, digest(principal), digest(session)],
            Self::User(principal) => [2, digest(principal), 0],
            Self::Argument(argument) => [3, *argument, 0],
        };
        fold(key.combine(&parts))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callward_core::{Caller, Principal};
    use callward_testkit::tool;

    use super::*;

    fn call(arguments: &str) -> ToolCall {
        let caller = Caller::new(Principal::new("ada"));
        ToolCall::new(tool("t").build(), arguments.to_owned()).with_caller(Arc::new(caller))
    }

    fn keys(by: &str) -> Keys {
        Keys::new(&AffinityConfig {
            by: by.parse().unwrap(),
            ..AffinityConfig::default()
        })
    }

    #[test]
    fn only_an_argument_that_readers_agree_on_is_a_key() {
        let keys = keys("/account/id");
        for arguments in [
            "",
            "{}",
            r#"{"account":{}}"#,
            r#"{"account":{"id":null}}"#,
            r#"{"account":7}"#,
            r#"{"id":7}"#,
            r#"{"account":{"id":7,"id":8}}"#,
            r#"{"account":{"id":7},"Account":{"id":8}}"#,
            r#"{"account":"{\"id\":7}"}"#,
            "[]",
            "not JSON",
        ] {
            assert!(keys.of(&call(arguments)).is_none(), "{arguments}");
        }
        let call = call(r#"{"account":{"id":7},"q":1}"#);
        assert!(keys.of(&call).is_some());
    }

    #[test]
    fn a_digest_of_one_process_means_nothing_to_another() {
        let one = call("{}");
        let digest = || {
            let keys = keys("user");
            keys.event_digest(&keys.of(&one).unwrap()).to_string()
        };
        assert_eq!(digest().len(), 8);
        assert_ne!(digest(), digest());
    }

    #[test]
    fn the_digests_are_those_of_every_release() {
        let (principal, session) = ("ada", "1");
        let argument = |text| Key::Argument(argument::digest(text).unwrap());
        for (key, digest) in [
            (Key::Session { principal, session }, 0x9ea6_faad_5352_5d20),
            (Key::User(principal), 0x5d66_6064_b04f_1718),
            (argument("7"), 0x1970_83e9_7d22_bee2),
            (argument(r#""a""#), 0x378e_e426_44d3_5974),
        ] {
            assert_eq!(key.digest(), digest, "{key:?}");
        }
    }
}
