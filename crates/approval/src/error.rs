//! What can go wrong with approvals.

use std::error::Error;
#[cfg(feature = "store")]
use std::fmt::Display;
use std::time::Duration;

use callward_core::human::show_duration;
use callward_core::{Delivery, ErrorKind, InvalidConfig, ToolError, ToolName};

use crate::{Limit, RequestId, State};

/// Why a store failed, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another part of this one, has the file open.
    #[error("{path} is open elsewhere; end the other process, or use another file")]
    InUse {
        /// The file.
        path: String,
    },
    /// The key does not open the file.
    #[error(
        "the key in {key} does not open {path}; restore the key that belongs to it, or move the \
         file away, which forgets all requests"
    )]
    WrongKey {
        /// The file of the store.
        path: String,
        /// The file of its key.
        key: String,
    },
    /// The file cannot be read as what was written.
    #[error(
        "{path} is damaged ({reason}); restore it, or move it away, which forgets all requests"
    )]
    Damaged {
        /// The file.
        path: String,
        /// What was found.
        reason: String,
    },
    /// Reading or writing failed.
    #[error("the approvals cannot be read or written: {0}")]
    Failed(#[source] Cause),
}

/// What went wrong with reading or writing.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

impl StoreError {
    /// Takes what went wrong.
    pub fn failed(cause: impl Into<Cause>) -> Self {
        Self::Failed(cause.into())
    }

    #[cfg(feature = "store")]
    pub(crate) fn damaged(path: &str, reason: &dyn Display) -> Self {
        let (path, reason) = (path.to_owned(), reason.to_string());
        Self::Damaged { path, reason }
    }
}

/// Why something cannot be done with a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// No request has this id, or it ended too long ago.
    #[error("no request {0}")]
    NotFound(RequestId),
    /// The request is not in a state in which this can be done.
    #[error("request {id} is {state}")]
    Ended {
        /// The request.
        id: RequestId,
        /// Its state.
        state: State,
    },
    /// The principal that asks cannot decide.
    #[error("a request is not decided by the one that asks")]
    DecidedByTheOneThatAsks,
    /// The rule that asks wants a decision of one who has another role.
    #[error("a request is decided by one who has the role {}", .0.join(" or "))]
    LacksRole(Vec<String>),
    /// Only the principal that asks can withdraw a request.
    #[error("a request is withdrawn by the one that asks only")]
    NotTheOneThatAsks,
    /// No grant has this id, or it expired.
    #[error("no grant {0}")]
    NoGrant(RequestId),
    /// A grant for a tool that may destroy has to say which arguments it is for.
    #[error("{0} may destroy: a grant for it needs conditions over its arguments (`when`)")]
    NeedsPattern(ToolName),
    /// A grant would hold too long, or not at all.
    #[error("a grant holds for up to 30 days, found {}", show_duration(*.0))]
    Lifetime(Duration),
    /// There are [`Grant::MOST`](crate::Grant::MOST) grants.
    #[error(
        "there are {} grants, which is the most; revoke some",
        crate::Grant::MOST
    )]
    TooManyGrants,
    /// Too many requests are pending.
    #[error("too many calls wait for approval ({0:?})")]
    TooMany(Limit),
    /// An invalid setting.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ApprovalError> for ToolError {
    /// The call is refused, and certainly not sent.
    fn from(error: ApprovalError) -> Self {
        let (kind, text) = match &error {
            ApprovalError::TooMany(_) => (
                ErrorKind::Overloaded,
                "too many calls wait for approval; wait until some of them are decided",
            ),
            // the caller cannot mend the store, and need not know where its file is
            _ => (
                ErrorKind::Internal,
                "the call needs approval, and approvals are out of order",
            ),
        };
        Self::new(kind, Delivery::NotSent, text).with_source(error)
    }
}
