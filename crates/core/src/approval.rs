//! What somebody said who was asked before a call.

/// What somebody said who was asked before a call, and who that was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approval {
    /// What was said.
    pub verdict: ApprovalVerdict,
    /// Who said it, as they are known: a principal, a rule of the operator, a client that asked its
    /// user.
    pub by: String,
}

/// What is said to a call that asks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApprovalVerdict {
    /// The call may be sent.
    Approve,
    /// The call may not be sent.
    Decline,
}

impl ApprovalVerdict {
    /// Returns the word used in records and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Decline => "refused",
        }
    }
}

impl Approval {
    /// States what was said, and by whom.
    #[must_use]
    pub fn new(verdict: ApprovalVerdict, by: impl Into<String>) -> Self {
        Self {
            verdict,
            by: by.into(),
        }
    }
}
