//! How a server is, in one word for people.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::word::Word;

/// How a server is, as the router knows it. Breakers are asked besides, call by call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HealthState {
    /// Its calls failed too often: it gets none for a while.
    Ejected,
    /// Nothing speaks against it.
    Healthy,
    /// An operator says that it is not to be used.
    HeldDown,
    /// Its time of ejection is over, and a first call is on its way to find out how it is.
    Probing,
    /// It has just joined or come back, and gets less than its share.
    SlowStart,
    /// Its connection is lost, or it answers no pings.
    Unreachable,
}

impl HealthState {
    /// Returns the word used in events, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ejected => "ejected",
            Self::Healthy => "healthy",
            Self::HeldDown => "held_down",
            Self::Probing => "probing",
            Self::SlowStart => "slow_start",
            Self::Unreachable => "unreachable",
        }
    }

    pub(super) const fn of(word: Word) -> Self {
        if word.has(Word::HELD) {
            Self::HeldDown
        } else if word.has(Word::GONE | Word::SILENT) {
            Self::Unreachable
        } else if word.has(Word::PROBING) {
            Self::Probing
        } else if word.has(Word::EJECTED) {
            Self::Ejected
        } else if word.has(Word::STARTING) {
            Self::SlowStart
        } else {
            Self::Healthy
        }
    }
}

impl fmt::Display for HealthState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A server's health that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthChange {
    /// How it was.
    pub from: HealthState,
    /// How it is.
    pub to: HealthState,
    /// Why, in a few words.
    pub reason: Cow<'static, str>,
}

/// All that is known of a server's health at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HealthStatus {
    /// How it is.
    pub state: HealthState,
    /// How many faults in a row were the last outcomes of its calls.
    pub faults_in_a_row: u32,
    /// How often it was ejected since it joined.
    pub ejections: u64,
    /// Why it was ejected the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ejection: Option<Cow<'static, str>>,
    /// How long until its ejection is over and a call may find out how it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_probe: Option<Duration>,
    /// The part of its share of calls that it gets, in percent: 100 but for slow start.
    pub share_percent: u32,
}

/// Who says that a server is there, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Witness {
    /// Its connection.
    Connection,
    /// An operator.
    Operator,
    /// The pings it answers.
    Ping,
}

impl Witness {
    pub(super) const fn flag(self) -> u64 {
        match self {
            Self::Connection => Word::GONE,
            Self::Operator => Word::HELD,
            Self::Ping => Word::SILENT,
        }
    }

    pub(super) const fn reason(self, presence: Presence) -> &'static str {
        match (self, presence) {
            (Self::Connection, Presence::Up) => "its connection is back",
            (Self::Connection, Presence::Down) => "its connection is lost",
            (Self::Operator, Presence::Up) => "an operator released it",
            (Self::Operator, Presence::Down) => "an operator holds it down",
            (Self::Ping, Presence::Up) => "it answers pings again",
            (Self::Ping, Presence::Down) => "it answers no pings",
        }
    }
}

/// Whether a server is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is there, or it is not")]
pub enum Presence {
    /// It is not there, or not to be used.
    Down,
    /// It is there.
    Up,
}

/// How a server begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With all of its share: there is nobody else yet.
    Full,
    /// With a part of its share that grows: others are there, and warm.
    Slow,
}
