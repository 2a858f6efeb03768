//! Identifies callers, and decides what each may call.
//!
//! A request shows one credential at most, and one that is not valid is a [`Refusal`]: there is no
//! second way. Which tools a caller may call is one decision, for lists and for calls alike.

mod layer;
mod refusal;
pub mod rules;
mod service;

pub use layer::AuthorizeLayer;
pub use refusal::{Reason, Refusal};
pub use rules::Policy;
pub use service::{Authorize, AuthorizeFuture, unknown_tool};
