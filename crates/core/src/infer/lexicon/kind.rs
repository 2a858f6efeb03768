//! What verbs do to the world.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a verb does to the world. Ordered from harmless to harmful.
///
/// ```
/// use callward_core::infer::VerbKind;
///
/// assert_eq!(serde_json::from_str::<VerbKind>("\"delete\"").ok(), Some(VerbKind::Delete));
/// assert!(VerbKind::Read < VerbKind::Delete);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum VerbKind {
    /// Changes nothing: `get`, `search`.
    Read,
    /// Only adds, and adds again each time: nothing that was there is lost. `create`, `upload`.
    Add,
    /// Puts a mark on something, or takes it off: a second run changes nothing more, and nothing is
    /// lost. `star`, `lock`.
    Mark,
    /// Sets something going or brings it to a stop, again each time. Nothing is lost by it. `start`.
    Act,
    /// Brings about a state: a second run changes nothing more. What was there is replaced. `update`.
    Set,
    /// Changes what it finds, or cannot be taken back, or may do anything; again each time. `send`.
    Change,
    /// Takes away for good; what is gone cannot go twice. `delete`.
    Delete,
    /// Loses something each time it runs. `rollback`.
    Damage,
}

impl VerbKind {
    /// All kinds, from harmless to harmful.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Add,
        Self::Mark,
        Self::Act,
        Self::Set,
        Self::Change,
        Self::Delete,
        Self::Damage,
    ];

    /// Returns the word used in a config.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Add => "add",
            Self::Mark => "mark",
            Self::Act => "act",
            Self::Set => "set",
            Self::Change => "change",
            Self::Delete => "delete",
            Self::Damage => "damage",
        }
    }

    /// Says whether the verb loses something.
    #[must_use]
    pub const fn is_destructive(self) -> bool {
        matches!(self, Self::Delete | Self::Damage)
    }

    /// Says whether the verb does more than add, so that something may be lost.
    #[must_use]
    pub const fn may_lose(self) -> bool {
        matches!(self, Self::Set | Self::Change) || self.is_destructive()
    }

    /// Says whether a second run changes nothing more.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::Read | Self::Mark | Self::Set | Self::Delete)
    }
}

impl fmt::Display for VerbKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
