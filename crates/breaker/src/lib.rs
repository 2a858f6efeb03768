//! Stops sending calls to a server and tool that keep failing.
//!
//! A [`BreakerLayer`] stands before one server and keeps a breaker for each of its tools, so that a
//! tool which is broken takes no other tool with it; or it keeps one for the whole server, so that a
//! server which cannot be reached is not tried once for each of its tools. The breakers live in a
//! [`BreakerSet`], where the router asks who is available and where operators look and intervene.
//! [`Circuit`] is one breaker by itself, for what is not a tool call: the discovery of a server, say.
//!
//! # Rule
//!
//! A breaker of a tool opens after 3 failures in a row. While it is open, calls are refused at once.
//! After 30 s it is half open: one call is let through as a probe. If the server answers it, the
//! breaker closes; if not, it opens for twice as long, 5 minutes at most. One success is enough, of
//! however many probes.
//!
//! | outcome | for its tool | for the whole server |
//! | --- | --- | --- |
//! | answer, also the tool's own failure (`isError: true`) | success | success |
//! | the server refuses the call as the caller's fault, or its answer is too large | success: the server works | success |
//! | connection refused, or lost before the call was sent | failure | failure |
//! | connection lost after that | failure | failure, once for each tool in a row |
//! | the server's own fault, protocol error | failure | success: it can be reached |
//! | timeout | failure | nothing: it may be the one tool |
//! | timeout of an attempt that the caller's deadline left less than 5 s | nothing | nothing |
//! | 429 | nothing | success |
//! | cancellation, a refusal by this runtime, a dropped call | nothing | nothing |
//!
//! In a row are failures of which each call began after the failure before was known; and ended when all
//! that had been under way with that one had ended, too, or a second later. What ends a connection, or
//! makes a server report a fault, may end all calls of the moment, and is one event however many they
//! are: a server that dies once with eight calls under way has failed once. And a tool that loses three
//! replies in ten fails three times before anybody knows as soon as many call it, but not three times in a
//! row. Calls that take no time are served one by one, however many callers there are. So where several
//! call (two calls were under way at once within the last second, or calls of two sessions fail), what fails
//! within 100 ms of a failure that counts is one with it, too. Timeouts, and connections that cannot be
//! made, count each: every call has found out for itself, and has waited for it. To a single caller all
//! this makes no difference.
//!
//! A connection that is lost after the call was sent has two readings: the server went away, or this
//! one tool ends its connections, as one does that crashes its worker or answers more than a proxy
//! lets through. Which of them it is, only another tool can tell. So the breaker of a server counts such
//! failures once for each tool since the last answer of any, and a run of one tool's alone never opens
//! it: that tool's own breaker does what there is to do, and its neighbours are not refused. A server
//! that has really gone refuses connections, which counts each time, or fails all of its tools. Half
//! open it is the same: such a probe of one tool gives its place to the next call, and only one
//! of another tool opens the breaker again.
//!
//! The breaker of a server opens after 5 failures in a row, for 10 s, a minute at most
//! ([`BreakerConfig::server`]); that of its discovery after 2, for 60 s
//! ([`BreakerConfig::discovery`]).
//!
//! # Shares
//!
//! Failures in a row say little of a tool that is called a thousand times a minute, and nothing of one
//! that is slow. So a breaker may also open, instead or as well, by the share of calls that fail
//! ([`with_failure_rate`](BreakerConfig::with_failure_rate)) or are slow
//! ([`with_slow_calls`](BreakerConfig::with_slow_calls)), of all calls of the last minute, once there
//! were enough of them. A good call never opens a breaker, even if it is the one that makes them
//! enough. Before a whole server, the share of failures is taken without the lost connections of the
//! tool that has most of them, and there must be enough calls without those. Time in which a call waits
//! for a person makes it no slower: whoever asks one says so
//! through the call's [`ProgressSink`](callward_core::ProgressSink). Where slow calls open a breaker,
//! a slow probe does not close it.
//!
//! # Probes
//!
//! A probe is never a call of the breaker's own making: it is a call that somebody made, sent once. And
//! it is sent to a server of which nothing good is known, so its outcome may stay unknown. For a read
//! that does no harm. For a write that must not run twice it does: instead of "certainly not sent" its
//! caller hears "may have run". So such a write is refused where a read may come in its place, with
//! the time until it would be let through itself:
//!
//! * a breaker that has let safe calls through waits for one, for one open time more, and then takes
//!   the write: nobody may ever read again;
//! * a breaker that never saw a safe call takes the write at once: there is nothing to wait for, and
//!   its tool has to come back somehow;
//! * a write that is safe to repeat is as good as a read.
//!
//! So no breaker is stuck for want of reads. Whoever has a harmless question to put to a server need
//! not wait for a call: [`Circuit::probe_due`] says when.
//!
//! # Readiness
//!
//! Ready when the inner service is, also while the breaker is open: which breaker it is about is
//! known only from the call.
//!
//! # Cancellation
//!
//! A dropped call counts as nothing. A dropped probe gives its place to the next call. A probe that
//! never ends is written off after a limit (the open time, if not set): a new probe is let through,
//! and whatever becomes of the old one counts as nothing.
//!
//! # Clone
//!
//! Clones of a layer, a service and a set share the breakers.
//!
//! # Errors
//!
//! Adds [`ErrorKind::BreakerOpen`](callward_core::ErrorKind::BreakerOpen), certainly not sent. It
//! names server and tool, says why the breaker opened, and states the time to the next probe. While a
//! probe runs that is when it would be written off, and whoever waits hears of its end
//! ([`ToolError::reopening`](callward_core::ToolError::reopening)), however it ends: the breaker is
//! closed then, or open for longer, or the next call may be the probe.
//!
//! # Telemetry
//!
//! A breaker that opens, or closes again, is one event, not one per call. [`BreakerSet::snapshot`]
//! tells the state of each.
//!
//! # Cost
//!
//! A closed breaker without failures is two loads of one word: neither letting a call through nor its
//! success writes to the breaker's state, takes its lock or reads a clock. So threads that share one
//! do not disturb each other ([`Circuit::admit_ref`]). A call through the layer outlives its caller,
//! and so counts a reference besides; its breaker is found by the tool's address. Shares cost more:
//! each outcome is written down under the lock, and where slow calls count, the clock is read twice
//! and the call gets a sink of its own. `benches/check.rs` measures all but the last.
//!
//! # Bounds
//!
//! A set keeps 10,000 breakers of tools. Beyond that it drops those that hold nothing; and if servers
//! send more names than that of tools that fail, then those that hold least. What is in use or forced
//! stays.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use callward_breaker::{BreakerLayer, BreakerSet};
//! use callward_core::{Delivery, ErrorKind, ServerId, ToolError};
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let down = MockService::new(|_, _| async {
//!     Err(ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "connection refused"))
//! });
//! let breakers = BreakerSet::default();
//! let orders = ServerId::new("orders").expect("a valid id");
//! let service = ServiceBuilder::new()
//!     .layer(BreakerLayer::new(breakers.clone(), orders.clone()))
//!     .service(down.clone());
//! let get_order = tool("get_order").read_only().build();
//! for _ in 0..5 {
//!     let result = service.clone().oneshot(call(&get_order, json!({}))).await;
//!     assert!(result.is_err());
//! }
//! assert_eq!(down.started(), 3, "two calls were refused at once");
//! assert!(!breakers.is_available(&orders, get_order.name()));
//! # }
//! ```
//!
//! # Order
//!
//! Inside the router, once for each server: the server's breaker, then those of its tools, so that
//! what a tool's breaker refuses is not taken for a probe of the server. Outside that server's
//! concurrency limit and attempt timeout: a refused call must take no permit, and a timeout must be seen as the failure it is.
//! The wrong way round, with the timeout outside, a server that hangs would only ever show dropped
//! calls, which count as nothing.

mod circuit;
mod config;
mod future;
#[cfg(all(test, shuttle))]
mod interleavings;
mod key;
mod layer;
mod mark;
mod owned;
mod permit;
mod person;
mod prune;
mod rejection;
mod risk;
mod run;
mod service;
mod set;
mod state;
mod status;
mod subject;
mod sync;
mod trip;
mod verdict;
mod window;
mod word;

pub use circuit::Circuit;
pub use config::{BreakerConfig, SlowCalls};
pub use future::BreakerFuture;
pub use layer::BreakerLayer;
pub use permit::Permit;
pub use rejection::Rejection;
pub use risk::Risk;
pub use service::Breaker;
pub use set::{BreakerConfigs, BreakerSet};
pub use status::{BreakerState, BreakerStatus, WindowStatus};
pub use subject::Subject;
pub use verdict::{Verdict, judge, judge_error_of_transport, judge_transport};
