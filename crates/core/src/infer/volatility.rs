//! Reads whose answers differ from call to call, so that none may stand in for the next.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Source;

/// Why the answer to a read must be fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Volatility {
    /// It reads what changes by itself: a clock, a random source, the progress of a job. Reading
    /// again does no harm, but an answer kept is a wrong one.
    Clock,
    /// Each call moves on: the next page, the next message. Reading again skips something, so that
    /// a call that may have run is not repeated either.
    Cursor,
}

impl Volatility {
    /// Returns the word used in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Cursor => "cursor",
        }
    }
}

/// A read whose answer must be fresh, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volatile {
    /// Why.
    pub volatility: Volatility,
    basis: Basis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Basis {
    /// A word of its name or description.
    Word(&'static str),
    /// What was seen while it ran.
    Seen(Arc<str>),
}

impl Volatile {
    pub(super) const fn new(volatility: Volatility, word: &'static str) -> Self {
        Self {
            volatility,
            basis: Basis::Word(word),
        }
    }

    /// States that answers of the tool were seen to change although nothing was written.
    ///
    /// `evidence` says what was seen, as the end of a sentence.
    #[must_use]
    pub fn observed(evidence: impl Into<Arc<str>>) -> Self {
        Self {
            volatility: Volatility::Clock,
            basis: Basis::Seen(evidence.into()),
        }
    }

    /// Says whether each call moves on.
    #[must_use]
    pub const fn moves_on(&self) -> bool {
        matches!(self.volatility, Volatility::Cursor)
    }

    /// Returns who says so: [`Source::Inferred`] or [`Source::Observed`].
    #[must_use]
    pub const fn source(&self) -> Source {
        match self.basis {
            Basis::Word(_) => Source::Inferred,
            Basis::Seen(_) => Source::Observed,
        }
    }

    /// Returns the reason, in a few words.
    #[must_use]
    pub fn reason(&self) -> Cow<'static, str> {
        match (&self.basis, self.volatility) {
            (Basis::Seen(evidence), _) => format!("seen while it ran: {evidence}"),
            (Basis::Word(word), Volatility::Clock) => format!("`{word}` changes by itself"),
            (Basis::Word(word), Volatility::Cursor) => {
                format!("each call moves on: it says `{word}`")
            }
        }
        .into()
    }
}
