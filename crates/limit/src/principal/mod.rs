//! The limits of each principal.
//!
//! **Rule.** A call counts against the limits of all calls and of what its plan says of its effect:
//! a write against those of writes, too, and a destructive call, which is a write, against all
//! three. It counts in all of them or, if one is reached, in none, and is refused at once. A rate
//! is a token bucket with a burst of one minute's calls, so at most twice the limit passes in any
//! minute. Lists count against a limit of their own: see [`PrincipalLimitLayer::admit_list`]; calls
//! that no plan is known of count as calls: see [`PrincipalLimitLayer::admit_unknown`].
//!
//! **Memory.** 65,536 principals at most are known. One without a recent call is forgotten when
//! the place is needed, and never one with a call in flight or an incomplete bucket: where there
//! are no others, further principals share one set of limits.
//!
//! **Readiness** is that of the inner service.
//!
//! **Cancellation.** A dropped call is no longer in flight; what it took of rates stays taken.
//!
//! **Clone.** Clones of a layer, and all services it makes, share the limits.
//!
//! **Errors.** Adds [`RateLimited`](callward_core::ErrorKind::RateLimited), not sent, with the
//! limit and the time to wait.
//!
//! **Order.** Outside the cache and authorization, so that answers from the cache and denied calls
//! count, too.

mod config;
mod layer;
mod limit;
mod table;

pub use config::PrincipalLimitConfig;
pub use layer::{PrincipalLimit, PrincipalLimitLayer};
pub use table::Permit;
