//! What the cache does with a call, and for how long.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::millis;

/// What the cache does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheRule {
    /// Not looked up, not stored, invalidates nothing: a read whose result must be fresh.
    Bypass,
    /// Never stored; drops what the call may have changed.
    Invalidate,
    /// A write that repeats without further effect: drops what it may have changed, then its own
    /// result is kept, unless another write overlapped.
    KeepOwn {
        /// How long at most.
        #[serde(rename = "ttl_ms", serialize_with = "millis::serialize")]
        ttl: Duration,
        /// What decides how long.
        lifetime: Lifetime,
    },
    /// A read: looked up, and stored.
    Store {
        /// How long at most.
        #[serde(rename = "ttl_ms", serialize_with = "millis::serialize")]
        ttl: Duration,
        /// What decides how long.
        lifetime: Lifetime,
    },
}

/// What decides how long a kept result is served, counted from when its call was dispatched
/// (RFC 9111, section 4.2.3).
///
/// In JSON one of the words `stated`, `fixed` and `learned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Lifetime {
    /// The operator states the TTL for the tool. It overrides the server's.
    Stated,
    /// The TTL. The server may shorten it.
    #[default]
    Fixed,
    /// What the server says, up to the TTL; else what evidence allows: the longest gap after which
    /// repeated calls of the tool almost never had another answer.
    Learned(Learned),
}

/// How a learned lifetime begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Learned {
    /// What the server says may also be longer than what evidence allows. `false` for an untrusted
    /// server, whose word only shortens.
    pub extends: bool,
    /// The tool reads a clock or a cursor by its words: before there is evidence, not even
    /// concurrent calls share a result.
    pub volatile: bool,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            extends: true,
            volatile: false,
        }
    }
}

impl Lifetime {
    /// Returns the stricter of two: under which no result is served that the other would not.
    pub(crate) fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Learned(one), Self::Learned(other)) => Self::Learned(Learned {
                extends: one.extends && other.extends,
                volatile: one.volatile || other.volatile,
            }),
            (learned @ Self::Learned(_), _) | (_, learned @ Self::Learned(_)) => learned,
            (Self::Stated, Self::Stated) => Self::Stated,
            _ => Self::Fixed,
        }
    }
}

impl Serialize for Lifetime {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Stated => "stated",
            Self::Fixed => "fixed",
            Self::Learned(_) => "learned",
        })
    }
}

impl CacheRule {
    /// Returns the rule under which nothing is kept that either of the two would not keep, and
    /// under which everything is dropped that either would drop.
    pub(crate) fn stricter(self, other: Self) -> Self {
        if let (Some((ttl, lifetime)), Some((other_ttl, other_lifetime))) =
            (self.kept(), other.kept())
        {
            let (ttl, lifetime) = (ttl.min(other_ttl), lifetime.stricter(other_lifetime));
            return match (self, other) {
                (Self::Store { .. }, Self::Store { .. }) => Self::Store { ttl, lifetime },
                _ => Self::KeepOwn { ttl, lifetime },
            };
        }
        match (self, other) {
            (Self::Store { .. }, stricter) | (stricter, Self::Store { .. }) => stricter,
            (Self::Bypass, Self::Bypass) => Self::Bypass,
            // one must be fresh and the other invalidates: this does both
            _ => Self::Invalidate,
        }
    }

    /// Returns how long a result is kept at most, and what decides it.
    pub(super) const fn kept(self) -> Option<(Duration, Lifetime)> {
        match self {
            Self::Store { ttl, lifetime } | Self::KeepOwn { ttl, lifetime } => {
                Some((ttl, lifetime))
            }
            Self::Bypass | Self::Invalidate => None,
        }
    }
}
