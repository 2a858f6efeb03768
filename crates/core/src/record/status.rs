//! The outcome of a call at the cache and at the hedge.

words! {
    /// What the cache did with a call.
    #[non_exhaustive]
    CacheStatus {
        /// The cache was not asked, or there is none.
        Bypass = "bypass",
        /// Answered from the cache.
        Hit = "hit",
        /// Waited for an identical call that was already running.
        Joined = "joined",
        /// Looked up, not found; the call ran.
        Miss = "miss",
        /// A write: the call ran, and what it may have changed was dropped.
        Invalidated = "invalidated",
        /// Answered from the cache after the end of the answer's lifetime: while a new one is
        /// fetched, or because the server fails. The answer's `_meta` says so.
        Stale = "stale",
    }
}

impl CacheStatus {
    pub(super) fn from_u8(value: u8) -> Self {
        let known = Self::ALL.get(usize::from(value));
        known.copied().unwrap_or(Self::Bypass)
    }
}

words! {
    /// The outcome of a second attempt beside the first.
    #[non_exhaustive]
    HedgeStatus {
        /// None was sent.
        None = "none",
        /// It was sent and did not decide the answer: the first attempt did, both failed, or the
        /// call still runs.
        Sent = "sent",
        /// It answered first, and its answer is the call's.
        Won = "won",
    }
}

impl HedgeStatus {
    pub(super) fn from_u8(value: u8) -> Self {
        let known = Self::ALL.get(usize::from(value));
        known.copied().unwrap_or(Self::None)
    }
}
