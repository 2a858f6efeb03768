//! What a call is made for.

words! {
    /// What a call is made for.
    #[non_exhaustive]
    Purpose {
        /// Somebody wants the answer.
        Caller = "caller",
        /// A cache fetches a new answer in the place of its callers, who have an old one.
        Refresh = "refresh",
    } default Caller
}

impl Purpose {
    /// Says whether the runtime makes the call by itself. Such a call is not repeated: its failure is
    /// nobody's.
    #[must_use]
    pub const fn is_background(self) -> bool {
        !matches!(self, Self::Caller)
    }
}
