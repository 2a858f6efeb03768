//! Whether a person has to approve a call, and what was decided.

use std::sync::Arc;

use crate::Principal;

crate::words! {
    /// Who approves calls.
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    Approver {
        /// An operator: never the principal that calls.
        Operator = "operator",
        /// The person at the client, whom the client itself asks.
        Client = "client",
    } default Operator
}

/// A rule that says that a person must approve a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the layer that decides makes it")]
pub struct Ask {
    /// The name of the rule, as in [`Authorization`](crate::Authorization).
    pub rule: Arc<str>,
    /// Who approves; `None` for the one that approves calls without a rule.
    pub by: Option<Approver>,
    /// The roles, of which an operator that decides must have one; none stand for any.
    pub roles: Vec<String>,
}

crate::words! {
    /// What came of a call whose plan, or a rule, wants a person's approval.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    ConfirmOutcome {
        /// The runtime asks no one: the client is left to ask before it calls.
        Unasked = "unasked",
        /// The call was approved, and sent.
        Approved = "approved",
        /// The call was denied.
        Denied = "denied",
        /// The request waits for a decision.
        Waiting = "waiting",
        /// No decision came in time.
        Expired = "expired",
        /// The request was taken back, or the client gave no decision.
        Withdrawn = "withdrawn",
        /// An equal call used the approval.
        Used = "used",
    } default Unasked
}

/// The request for approval of a call, and what was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the layer that asks makes it")]
pub struct Confirmation {
    /// What came of it.
    pub outcome: ConfirmOutcome,
    /// The id of the request.
    pub request: Arc<str>,
    /// The SHA-256 digest of the arguments that were approved.
    pub arguments_digest: Arc<str>,
    /// Who decided, if it is decided.
    pub by: Option<Principal>,
    /// Where: `cli`, say.
    pub channel: Option<String>,
}
