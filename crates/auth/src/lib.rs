//! Identifies callers, and decides what each may call.
//!
//! A request shows one credential at most, and one that is not valid is a [`Refusal`]: there is no
//! second way. Which tools a caller may call is one decision, for lists and for calls alike.

mod authenticator;
#[cfg(feature = "keys")]
pub mod keys;
mod layer;
#[cfg(feature = "tokens")]
mod metadata;
mod refusal;
pub mod rules;
mod service;
#[cfg(feature = "tokens")]
pub mod tokens;
#[cfg(feature = "tokens")]
pub mod webhook;

pub use authenticator::{Authenticated, Authenticator, MAX_CREDENTIAL, VerifyToken};
pub use layer::{AuthorizeLayer, Decide};
#[cfg(feature = "tokens")]
pub use metadata::{Challenge, ResourceMetadata, well_known_path};
pub use refusal::{Reason, Refusal};
pub use rules::Policy;
pub use service::{Authorize, AuthorizeFuture, unknown_tool};
