//! Retries a failed call when that is certainly safe.
//!
//! A [`RetryLayer`] puts `tower::retry` around a service, with a policy of its own: what may be
//! retried is decided by the tool's plan and by how far the failed call got, never by the kind of
//! failure alone.
//!
//! # Rule
//!
//! Retry only if the call certainly did not run, or its tool is safe to retry; and only if the
//! failure is of a kind that may pass; and only while budget and deadline last.
//!
//! | failure | safe tool | `OnlyUnsent` | any other tool |
//! | --- | --- | --- | --- |
//! | may pass, certainly not sent | retry, elsewhere first | retry, elsewhere first | error |
//! | may pass, answered (429, 5xx, a server's own fault) | retry, after the stated time | error | error |
//! | may pass, sent and not answered | retry | `OutcomeUnknown` | `OutcomeUnknown` |
//! | will not pass (the caller's fault, nobody offers the tool, an answer that is too large) | error | error | error |
//! | the tool's own failure (`isError: true`) | an answer | an answer | an answer |
//!
//! The pause before a retry is exponential and jittered ([`Backoff`]), or somebody else's
//! ([`Schedule`]); its first step comes from the tool's plan. A `Retry-After` is honoured as a floor,
//! or the layer gives up at once: it never waits longer than [`RetryConfig::max_retry_after`], nor
//! beyond the deadline. So is the time until an open breaker lets a probe through, but only of a call
//! that has a deadline, and all such pauses together are no longer than that: others fail fast, as
//! breakers are for. Whoever knows that the server is back ends such pauses
//! ([`RetryLayer::server_is_back`]), and so does a breaker that says when its probe has ended
//! ([`ToolError::reopening`](callward_core::ToolError::reopening)): its stated time is then the latest,
//! and a call waits for as long as it may, also where that is shorter. To be refused so is not counted
//! among the attempts that are allowed.
//!
//! A server that could not be reached, and of which somebody knows when it is back, is waited for in
//! place of the next pause; that is an attempt like any other, counted and paid for. A server that is
//! started again is an example: it would be asked in vain until it has started.
//!
//! Calls that waited for one moment do not all come then. Each comes after its next pause, and one
//! step of the backoff later for each time that the number of those who waited before it has doubled:
//! one call in the first step, two in the next, then four. If the server does not bear the first of
//! them, its breaker opens again before the others come.
//!
//! Retries are paid from a budget per replica set ([`TokenBucket`]), so that an outage is not answered
//! with a multiple of the usual load. One that our own breaker or limit refused was no load, and costs
//! nothing. So a call that was only refused by breakers waits for them at no cost, and to send it at
//! last is no retry.
//!
//! # Deadline
//!
//! A call has one deadline for all its attempts. Each attempt of a tool that is safe to retry gets a
//! share of what is left, told inwards as [`Attempt::share`](callward_core::Attempt::share): an even
//! share among the attempts still allowed, but no less than twice what the tool says a call usually
//! takes, and no more than leaves room for the longest next pause and as much again. Of a tool that
//! says nothing an attempt gets half of what is left. Where two attempts do not fit, and for the last
//! one that is allowed, it is all that is left. An attempt timeout inside has to honour it, and fail
//! with [`Timeout`](callward_core::ErrorKind::Timeout), which may be retried.
//!
//! The share begins when the attempt is sent, and ends it only for a retry that is going to be made:
//! one that is taken out of the budget at that moment, and for which there is time. While the budget
//! is spent, which is while servers are overloaded, every attempt goes on until the deadline: one that
//! was cut short would have cost the server its work and the caller the answer.
//!
//! A retry that would not be over before the deadline, pause and usual duration taken together, is
//! not started, and the error says so with both figures. A call without a deadline has none to share
//! out: the attempts' own timeouts are all there is.
//!
//! A call that the runtime makes by itself ([`Purpose`](callward_core::Purpose)) is never retried.
//! One that nobody would miss takes from the same budget before its *first* attempt, like a retry.
//!
//! A call without an [`IdempotencyKey`](callward_core::IdempotencyKey) gets one before its first
//! attempt, and keeps it over all of them: a server that knows such keys then runs the call once,
//! whatever was lost on the way. Nothing is retried for having one.
//!
//! # Readiness
//!
//! Ready when the inner service is. A retry awaits readiness of the very value it calls; an error
//! of that wait is passed on as it is.
//!
//! # Cancellation
//!
//! Dropping the future drops the running attempt, or the pause. Nothing runs on, and a retry that
//! was paid for and not yet sent is put back into the budget.
//!
//! # Clone
//!
//! Clones, and all services made by one layer and its clones, share the budgets and the source of
//! jitter, from which no two calls get the same pauses. What is known of one call lives in its own
//! future.
//!
//! # Errors
//!
//! Adds [`ErrorKind::OutcomeUnknown`](callward_core::ErrorKind::OutcomeUnknown): a call that may
//! have had an effect was sent, no answer came, and it was not sent again. The first failure is its
//! source, and [`ToolError::outcome`](callward_core::ToolError::outcome) says what was sent, when, to
//! which server, and which tool to check with. Every other error keeps its kind and says how many
//! attempts were made; of several it tells each one's server, failure and pause
//! ([`ToolError::history`](callward_core::ToolError::history)). What might have passed and was not
//! retried, for want of budget or time, says why. Its delivery is that of the whole call: `Unknown`,
//! not `NotSent`, if the last attempt was not sent and an earlier one was. A write that was retried
//! in vain and may have run keeps its kind, and has an `outcome` too.
//!
//! And [`RateLimited`](callward_core::ErrorKind::RateLimited), not sent: a call that nobody would
//! miss, while the budget is spent.
//!
//! A fault that the server *answered* is passed on as it is, and is no promise that nothing
//! happened: a 503 can follow the effect. Who called an unsafe tool should check before calling
//! again, here too. And an attempt of an idempotent write that was given up on may still land after
//! its retry did.
//!
//! # Telemetry
//!
//! Retries, and the reason a retry was refused, are events at debug level.
//! [`RetryLayer::budgets`] tells what is left of each budget and how often it refused.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
//! use callward_retry::RetryLayer;
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), ToolError> {
//! let server = MockService::sequence(vec![
//!     Err(ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s")),
//!     Ok(ToolOutput::text("sunny")),
//! ]);
//! let service = ServiceBuilder::new().layer(RetryLayer::default()).service(server);
//! let weather = tool("get_weather").read_only().build();
//! let output = service.oneshot(call(&weather, json!({"city": "Oslo"}))).await?;
//! assert_eq!(output.to_text(), "sunny");
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Inside the confirmation (a human is asked once per call, not once per attempt) and inside the
//! cache (a hit needs no budget). Outside the rate limit, the router and the breakers: each attempt
//! counts there, and a retry may go to another server. The wrong way round, with this layer inside
//! the router, every retry would go to the server that has just failed.

#[cfg(feature = "backoff")]
pub mod backoff;
mod budget;
mod classify;
mod config;
mod deadline;
mod future;
mod give;
pub mod hedge;
#[cfg(all(test, shuttle))]
mod interleavings;
mod layer;
mod pause;
mod pauses;
mod policy;
mod retries;
mod schedule;
mod service;
mod share;
mod shared;
mod stats;
mod sync;

pub use budget::{BudgetStatus, TokenBucket};
pub use classify::{RetryDecision, classify};
pub use config::RetryConfig;
pub use future::RetryFuture;
pub use layer::RetryLayer;
pub use pauses::{Backoff, Jitter, Pauses};
pub use policy::RetryPolicy;
pub use schedule::{MakeSchedule, Schedule, Step};
pub use service::Retry;
pub use stats::{RetryOutcome, RetryOutcomes, RetryStats};
