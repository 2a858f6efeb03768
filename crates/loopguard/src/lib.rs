//! Answers in a server's place when one session repeats the same failing call over and over.
//!
//! A model that got an error often tries the very same call again, and again. Each try costs a server's
//! time and the model's own, and fills the conversation with the same text. A [`LoopGuardLayer`] ends
//! that: after some failures in a row it answers by itself, says what failed and how often, and that
//! another course is needed. It is no breaker: a breaker shields a server from everybody, this shields
//! one conversation from itself.
//!
//! # Rule
//!
//! Only calls whose plan allows a write are counted. A read is never held back: it may be a poll for
//! something that comes from outside of the gateway.
//!
//! The same call is: one session, one tool, and arguments that are the same JSON value, however they
//! are spelt. After [`LoopGuardConfig::failures`] failures of it in a row, with no success between, it
//! is answered here with `isError`, and no server is asked. Other arguments, other tools and other
//! sessions are not held back.
//!
//! A write may remove the cause of a failure. So another write resets everything the guard holds, of all
//! sessions: one of any tool and any caller that succeeded, or that may have changed something although
//! it failed (timed out, connection lost, a server's fault, dropped before its end). The repeated call
//! itself resets itself only by success. One that failed with `isError`, or was refused or not sent,
//! resets nothing.
//!
//! What counts is what says *never*, and not what says *later*:
//!
//! | end of a call | counts as |
//! | --- | --- |
//! | an answer without `isError` | success: all failures of all calls are forgotten |
//! | an answer with `isError` | failure |
//! | refused as malformed, unauthorized, unknown there; a server's fault; a broken or too large answer | failure |
//! | timed out, connection lost, outcome unknown: it got there and came to nothing | failure |
//! | rate limited, overloaded, breaker open, anything that says when to try again | neither |
//! | not sent for any other reason: no connection, no eligible server | neither |
//! | cancelled, or out of its own deadline | neither |
//! | a fault of this runtime | neither |
//!
//! Servers that are down are so for everybody, and for breakers to notice. But a call that loses the
//! connection or times out each time counts: it may be these arguments that the server cannot bear.
//!
//! [`LoopGuardConfig::wait`] after the last of them, 2 s by default, one try is let through, and one only:
//! if it succeeds all is forgotten, if it fails the guard answers for as long again. So a call that waits
//! for something from outside of the gateway sees it. Failures further apart than
//! [`LoopGuardConfig::window`] are not in a row.
//!
//! Callers without a session are passed by default ([`WithoutSession`]): the principal alone may stand
//! for many conversations (all anonymous clients of a stateless server are one), and the failures of one
//! are none of the others' business. Calls that the runtime makes by itself are passed too. The writes of
//! both reset what is held.
//!
//! # Readiness
//!
//! Ready when the inner service is.
//!
//! # Cancellation
//!
//! A call that is dropped counts as no failure. If it was the one try of its wait, the next call gets
//! the try. It may have run, so it resets the failures of other calls.
//!
//! # Clone
//!
//! Clones, and all services made by one layer and its clones, share what failed.
//!
//! # Errors
//!
//! Adds none: models read answers, and many clients show them no errors. The guard's answer is a
//! [`ToolOutput`](callward_core::ToolOutput) with `isError`.
//!
//! # Telemetry
//!
//! Each answer of the guard is an event at info level, and said in the call's record
//! ([`CallRecord::was_guarded`](callward_core::CallRecord::was_guarded)). [`LoopGuardLayer::stats`]
//! counts.
//!
//! # Cost
//!
//! A read pays for one look at its plan. As long as nothing fails, a write pays for three reference
//! counts and a few loads of one number. Once anything fails anywhere, a session without failures pays for
//! a hash of its name more, and for one addition to a shared counter if it succeeds. No lock is taken, and
//! nothing is hashed of the arguments, unless this very session has failures on the books. What is
//! held is bounded ([`LoopGuardConfig::capacity`]): the oldest go first.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use callward_core::{Caller, Principal, SessionId, ToolOutput};
//! use callward_loopguard::LoopGuardLayer;
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), callward_core::ToolError> {
//! let server = MockService::new(|_, _| async { Ok(ToolOutput::error_text("no such order: 7")) });
//! let service = ServiceBuilder::new()
//!     .layer(LoopGuardLayer::default())
//!     .service(server.clone());
//! let ada = Caller::new(Principal::new("ada")).with_session(SessionId::new("1"));
//! let order = call(&tool("cancel_order").build(), json!({"id": 7})).with_caller(Arc::new(ada));
//!
//! for _ in 0..5 {
//!     service.clone().oneshot(order.clone()).await?;
//! }
//! let sixth = service.oneshot(order).await?;
//! assert_eq!(server.started(), 5);
//! assert!(sixth.is_error());
//! assert!(sixth.to_text().contains("no such order: 7"));
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Inside of the cache: what it answers has not failed, and a session whose call failed may have the
//! answer that another one got. Failures are not kept, so none is hidden from the guard. Outside of
//! retry: what counts is a call that failed after all its attempts. The wrong way round, with this layer
//! inside of retry, two calls of three attempts each would be six failures.

mod answer;
mod config;
mod future;
mod key;
mod layer;
mod policy;
mod service;
mod shared;
mod table;

pub use config::{LoopGuardConfig, WithoutSession};
pub use future::LoopGuardFuture;
pub use layer::LoopGuardLayer;
pub use policy::{Verdict, classify};
pub use service::LoopGuard;
pub use shared::LoopGuardStats;
