//! What a call may do to the world, in one word.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a call may do to the world, resolved from a tool's effective hints.
///
/// Ordered from harmless to harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every policy table has exactly these four rows"
)]
pub enum Effect {
    /// Changes nothing.
    ReadOnly,
    /// Changes something, but a second identical call changes nothing more.
    Idempotent,
    /// Changes something each time it runs.
    Mutating,
    /// May destroy or overwrite.
    Destructive,
}

impl Effect {
    /// Returns the word used in spans, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Idempotent => "idempotent",
            Self::Mutating => "mutating",
            Self::Destructive => "destructive",
        }
    }

    /// Returns how dangerous a call of this effect is.
    #[must_use]
    pub const fn safety_level(self) -> SafetyLevel {
        match self {
            Self::ReadOnly => SafetyLevel::Safe,
            Self::Idempotent | Self::Mutating => SafetyLevel::Moderate,
            Self::Destructive => SafetyLevel::Dangerous,
        }
    }

    /// Says whether a call may change anything at all.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How dangerous a call is, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the published vocabulary has exactly these three"
)]
pub enum SafetyLevel {
    /// Nothing can go wrong.
    Safe,
    /// Something changes.
    Moderate,
    /// Something may be lost.
    Dangerous,
}

impl fmt::Display for SafetyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Safe => "safe",
            Self::Moderate => "moderate",
            Self::Dangerous => "dangerous",
        })
    }
}
