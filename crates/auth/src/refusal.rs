//! Why a credential is refused.

use std::time::Duration;

use callward_core::words;

words! {
    /// Why a credential is refused: a bounded set, for metrics. No reason contains anything of the
    /// credential.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Reason {
        /// A credential is needed: `Authorization: Bearer` with a key or a token.
        Missing = "missing",
        /// There are several credentials of one kind, such as two `Authorization` headers.
        Several = "several",
        /// Expected `Authorization: Bearer` with a key or a token, found another scheme or none.
        Scheme = "scheme",
        /// The credential is empty, has a part that cannot be read, or is in the query of the
        /// address.
        Malformed = "malformed",
        /// The credential is longer than 8 KiB, or the name of a user than 256 bytes.
        TooLong = "too_long",
        /// A header names the user, and who sends it is not a trusted proxy.
        UntrustedPeer = "untrusted_peer",
        /// The certificate has no name that can be used.
        NoName = "no_name",
        /// No such key exists, or its checksum is wrong.
        UnknownKey = "unknown_key",
        /// The key was revoked.
        Revoked = "revoked",
        /// The credential has expired.
        Expired = "expired",
        /// The credential is not valid yet.
        NotYetValid = "not_yet_valid",
        /// The token is for another audience.
        Audience = "audience",
        /// The token is from an issuer that is not configured.
        Issuer = "issuer",
        /// The token is not signed, or by an algorithm that its key is not for.
        Algorithm = "algorithm",
        /// The issuer has no key of this id.
        UnknownKeyId = "unknown_key_id",
        /// The signature is not that of the issuer.
        Signature = "signature",
        /// A claim of the token is missing or has the wrong type.
        Claims = "claims",
        /// The issuer says that the token is not active.
        Inactive = "inactive",
        /// The token cannot be checked now, as its issuer gives no answer: try again.
        Unavailable = "unavailable",
    }
}

/// A credential is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {}", reason.meaning())]
#[non_exhaustive]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// When a retry may succeed, where the credential could not be checked.
    pub retry_after: Option<Duration>,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            retry_after: None,
        }
    }
}
