//! What a call is made for.

use std::fmt;

/// What a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Purpose {
    /// Somebody wants the answer.
    #[default]
    Caller,
    /// A cache fetches a new answer in the place of its callers, who have an old one.
    Refresh,
}

impl Purpose {
    /// Says whether the runtime makes the call by itself. Such a call is not repeated: its failure is
    /// nobody's.
    #[must_use]
    pub const fn is_background(self) -> bool {
        !matches!(self, Self::Caller)
    }

    /// Returns the word used in events and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Refresh => "refresh",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
