//! One request for approval.

use std::fmt;
use std::sync::Arc;

use callward_core::Principal;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::{Asked, StoreError};

/// The name of a request or a grant: 128 random bits as 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Takes the name as it was shown.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub(crate) fn random() -> Result<Self, StoreError> {
        let mut bits = [0; 16];
        let filled = SystemRandom::new().fill(&mut bits);
        filled.map_err(|_| StoreError::failed("the system has no random bits"))?;
        Ok(Self::new(format!("{:032x}", u128::from_be_bytes(bits))))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

callward_core::words! {
    /// The state of a request.
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    State {
        /// It waits for a decision.
        Pending = "pending",
        /// The call may run, once and until the request expires.
        Approved = "approved",
        /// The call may not run.
        Denied = "denied",
        /// No decision came in time, or no call after it.
        Expired = "expired",
        /// The principal that asked takes it back.
        Withdrawn = "withdrawn",
        /// The call is being run.
        Consumed = "consumed",
        /// The call ran, and its tool succeeded.
        Succeeded = "succeeded",
        /// The call was answered with a failure.
        Failed = "failed",
        /// The call may have run.
        Unknown = "unknown",
    }
}

impl State {
    /// Returns `true` if the request is over.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Approved | Self::Consumed)
    }
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "each member has to be stated")]
pub struct Decision {
    /// Whether the call may run.
    pub approves: bool,
    /// Who decides.
    #[serde(with = "principal")]
    pub by: Principal,
    /// The roles that they have.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Where: `cli`, say.
    pub channel: String,
    /// What the caller is to know, if anything.
    pub note: Option<String>,
}

/// One request for approval. Its times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// What is asked.
    #[serde(flatten)]
    pub asked: Asked,
    /// When it was made.
    pub created_ms: u64,
    /// When it expires, if it has not ended and does not run by then.
    pub expires_ms: u64,
    /// Its state.
    pub state: State,
    /// Since when.
    pub since_ms: u64,
    /// The decision, if there was one.
    pub decision: Option<Decision>,
    /// The grant that stands for the decision, if one does.
    #[serde(default)]
    pub grant: Option<RequestId>,
    /// When it was taken.
    pub decided_ms: Option<u64>,
    /// The process that runs the call, or ran it.
    pub consumed_by: Option<String>,
    /// The server asked for input, and the call goes on with the client's next round.
    pub awaits_round: bool,
    /// Raised by each change. A store replaces a request only by the next revision.
    pub revision: u64,
}

impl Request {
    /// Returns `true` if it counts against the bound of all.
    pub(crate) const fn waits(&self) -> bool {
        match self.state {
            State::Pending => true,
            State::Approved => self.grant.is_some(),
            _ => false,
        }
    }

    /// Returns `true` if it had to be decided, or run, by now.
    #[must_use]
    pub const fn is_overdue(&self, now_ms: u64) -> bool {
        matches!(self.state, State::Pending | State::Approved) && now_ms >= self.expires_ms
    }
}

/// Principals as text.
pub(crate) mod principal {
    use callward_core::Principal;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(of: &Principal, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(of.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Principal, D::Error> {
        String::deserialize(from).map(Principal::new)
    }
}
