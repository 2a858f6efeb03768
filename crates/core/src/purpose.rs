//! What a call is made for.

words! {
    /// What a call is made for.
    #[non_exhaustive]
    Purpose {
        /// A caller waits for the answer.
        Caller = "caller",
        /// The cache refreshes an answer that its callers already have.
        Refresh = "refresh",
    } default Caller
}

impl Purpose {
    /// Returns `true` if the runtime makes the call by itself. Such a call is not retried: no
    /// caller sees its failure.
    pub const fn is_background(self) -> bool {
        !matches!(self, Self::Caller)
    }
}
