//! Identifies callers, and decides what each may call.
//!
//! One credential of a request counts, and one that is not valid is a [`Refusal`]: no other one is
//! tried. Which tools a caller may call is one decision, for lists and for calls alike.

mod authenticator;
#[cfg(feature = "certificates")]
pub mod certificate;
#[cfg(feature = "keys")]
pub mod keys;
mod layer;
#[cfg(feature = "tokens")]
mod metadata;
mod proxy;
mod refusal;
pub mod rules;
mod service;
#[cfg(feature = "tokens")]
pub mod signed;
#[cfg(feature = "tokens")]
pub mod tokens;
#[cfg(feature = "tokens")]
pub mod webhook;

pub use authenticator::{Authenticated, Authenticator, MAX_CREDENTIAL, Sender, VerifyToken};
pub use layer::{AuthorizeLayer, Decide};
#[cfg(feature = "tokens")]
pub use metadata::{Challenge, ResourceMetadata, well_known_path};
pub use proxy::{InvalidProxy, ProxyConfig, TrustedProxy};
pub use refusal::{Reason, Refusal};
pub use rules::Policy;
pub use service::{Authorize, AuthorizeFuture, unknown_tool};

/// Writes bytes as hexadecimal digits.
fn hex(bytes: impl IntoIterator<Item = u8>) -> String {
    let bytes = bytes.into_iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
