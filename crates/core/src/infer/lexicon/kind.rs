//! The effects of verbs.

words! {
    /// What a verb does to the world. Ordered from harmless to harmful.
    ///
    /// ```
    /// use callward_core::infer::VerbKind;
    ///
    /// assert_eq!(serde_json::from_str::<VerbKind>("\"delete\"").ok(), Some(VerbKind::Delete));
    /// assert!(VerbKind::Read < VerbKind::Delete);
    /// ```
    #[non_exhaustive]
    VerbKind {
        /// Changes nothing: `get`, `search`.
        Read = "read",
        /// Only adds, and adds again each time: nothing that was there is lost. `create`, `upload`.
        Add = "add",
        /// Sets or removes a mark: a second run changes nothing more, and nothing is lost. `star`,
        /// `lock`.
        Mark = "mark",
        /// Starts or stops something, again each time. Nothing is lost by it. `start`.
        Act = "act",
        /// Brings about a state: a second run changes nothing more. It replaces the previous state.
        /// `update`.
        Set = "set",
        /// Changes existing state, cannot be undone, or may do anything; again each time. `send`.
        Change = "change",
        /// Removes permanently; a second run changes nothing. `delete`.
        Delete = "delete",
        /// Loses something each time it runs. `rollback`.
        Damage = "damage",
    }
}

impl VerbKind {
    /// Returns `true` if the verb loses something.
    pub(crate) const fn is_destructive(self) -> bool {
        matches!(self, Self::Delete | Self::Damage)
    }

    /// Returns `true` if the verb does more than add, so that something may be lost.
    pub(crate) const fn may_lose(self) -> bool {
        matches!(self, Self::Set | Self::Change) || self.is_destructive()
    }

    /// Returns `true` if a second run changes nothing more.
    pub(crate) const fn is_idempotent(self) -> bool {
        matches!(self, Self::Read | Self::Mark | Self::Set | Self::Delete)
    }
}
