//! The limit of calls per minute.
//!
//! **Rule.** A call passes up to two limits: its tool's (the plan's `calls_per_minute`), and the
//! one for all calls. Each is a token bucket of [governor]: steady, with a bounded burst. A call
//! that finds no token waits in the limit's queue, first in, first out. If its turn would come
//! after [`RateLimitConfig::max_wait`] or too late for its deadline, it is refused at once.
//!
//! **Feature.** Without `rate`, which brings governor, no rate is limited: those of plans are not
//! enforced, and a config with a rate is refused.
//!
//! **Readiness** is that of the inner service: the limits are known only from the call.
//!
//! **Cancellation.** A dropped call leaves the queue without its token, and those behind move up.
//!
//! **Clone.** Clones of a layer, and all services it makes, share the limits.
//!
//! **Errors.** Adds [`RateLimited`](callward_core::ErrorKind::RateLimited), not sent, with the
//! limit and the time until the call's turn.
//!
//! **Order.** Inside retry, so that each attempt counts, and outside the router. Around one server,
//! outside its concurrency limit: a call that waits here holds no permit.

mod bucket;
mod config;
mod layer;
mod status;
#[cfg_attr(not(feature = "rate"), path = "no_tokens.rs")]
mod tokens;

pub use config::RateLimitConfig;
pub use layer::{RateLimit, RateLimitLayer};
pub use status::{RateStatus, RateSubject};
