//! Reads whose answers differ from call to call, so that none may replace the next.

use std::borrow::Cow;

words! {
    /// Why the answer to a read must be fresh.
    #[non_exhaustive]
    Volatility {
        /// It reads state that changes by itself: a clock, a random source, the progress of a job.
        /// Reading again is harmless, but a cached answer is wrong.
        Clock = "clock",
        /// Each call moves on: the next page, the next message. Reading again skips something, so a
        /// call that may have run is not retried either.
        Cursor = "cursor",
    }
}

/// A read whose answer must be fresh, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volatile {
    /// Why.
    pub volatility: Volatility,
    /// The word of its name or description that says so.
    word: &'static str,
}

impl Volatile {
    pub(super) const fn new(volatility: Volatility, word: &'static str) -> Self {
        Self { volatility, word }
    }

    /// Returns `true` if each call moves on.
    pub const fn moves_on(&self) -> bool {
        matches!(self.volatility, Volatility::Cursor)
    }

    /// Returns the reason, in a few words.
    pub fn reason(&self) -> Cow<'static, str> {
        let word = self.word;
        match self.volatility {
            Volatility::Clock => format!("`{word}` changes by itself"),
            Volatility::Cursor => format!("each call moves on: it says `{word}`"),
        }
        .into()
    }
}
