//! What the cache, and a hedge, did with a call.

/// What the cache did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CacheStatus {
    /// The cache was not asked, or there is none.
    Bypass = 0,
    /// Answered from the cache.
    Hit = 1,
    /// Waited for an identical call that was already running.
    Joined = 2,
    /// Looked up, not found; the call ran.
    Miss = 3,
    /// A write: the call ran, and what it may have changed was dropped.
    Invalidated = 4,
    /// Answered from the cache after the end of the answer's lifetime: while a new one is fetched, or
    /// because the server fails. The answer's `_meta` says so.
    Stale = 5,
}

impl CacheStatus {
    /// All of them, in the order of their numbers.
    pub const ALL: &[Self] = &[
        Self::Bypass,
        Self::Hit,
        Self::Joined,
        Self::Miss,
        Self::Invalidated,
        Self::Stale,
    ];

    /// Returns the word used in spans, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Hit => "hit",
            Self::Joined => "joined",
            Self::Miss => "miss",
            Self::Invalidated => "invalidated",
            Self::Stale => "stale",
        }
    }

    pub(super) const fn from_u8(value: u8) -> Self {
        match value {
            1 => Self::Hit,
            2 => Self::Joined,
            3 => Self::Miss,
            4 => Self::Invalidated,
            5 => Self::Stale,
            _ => Self::Bypass,
        }
    }
}

/// What became of a second attempt that ran beside the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum HedgeStatus {
    /// None was sent.
    None = 0,
    /// It was sent, and did not decide the answer: the first attempt did, or both failed, or the
    /// call still runs.
    Sent = 1,
    /// It answered first, and its answer is the call's.
    Won = 2,
}

impl HedgeStatus {
    /// Returns the word used in spans, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sent => "sent",
            Self::Won => "won",
        }
    }

    pub(super) const fn from_u8(value: u8) -> Self {
        match value {
            1 => Self::Sent,
            2 => Self::Won,
            _ => Self::None,
        }
    }
}
