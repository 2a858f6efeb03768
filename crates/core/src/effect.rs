//! The effect of a call, in one word.

words! {
    /// What a call may do to the world, resolved from a tool's effective hints.
    ///
    /// Ordered from harmless to harmful.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Effect {
        /// Changes nothing.
        ReadOnly = "read_only",
        /// Changes something, but a second identical call changes nothing more.
        Idempotent = "idempotent",
        /// Changes something each time it runs.
        Mutating = "mutating",
        /// May destroy or overwrite.
        Destructive = "destructive",
    }
}

impl Effect {
    /// Returns how dangerous a call of this effect is.
    pub const fn safety_level(self) -> SafetyLevel {
        match self {
            Self::ReadOnly => SafetyLevel::Safe,
            Self::Idempotent | Self::Mutating => SafetyLevel::Moderate,
            Self::Destructive => SafetyLevel::Dangerous,
        }
    }

    /// Returns `true` if a call may change anything at all.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }
}

words! {
    /// How dangerous a call is, for people.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    SafetyLevel {
        /// Nothing can go wrong.
        Safe = "safe",
        /// Something changes.
        Moderate = "moderate",
        /// Something may be lost.
        Dangerous = "dangerous",
    }
}
