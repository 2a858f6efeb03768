//! Stops sending calls to a server and tool that keep failing.
//!
//! A [`BreakerLayer`] stands before one server and keeps a breaker for each of its tools, so that a
//! tool which is broken takes no other tool with it, and a server which is down takes no other
//! server. The breakers live in a [`BreakerSet`], where the router asks who is available and where
//! operators look and intervene. [`Circuit`] is one breaker by itself, for what is not a tool call:
//! the discovery of a server, say.
//!
//! # Rule
//!
//! A breaker opens after 3 failures in a row. While it is open, calls are refused at once. After
//! 30 s it is half open: one call is let through as a probe. If the server answers it, the breaker
//! closes; if not, it opens for twice as long, 5 minutes at most.
//!
//! | outcome | counts as |
//! | --- | --- |
//! | answer, also the tool's own failure (`isError: true`) | success |
//! | the server refuses the call as the caller's fault | success: the server works |
//! | connection refused or lost, timeout, protocol error, the server's own fault | failure |
//! | 429, cancellation, a refusal by this runtime, a dropped call | nothing |
//!
//! A probe is never a call of the breaker's own making: it is a call that somebody made, sent once.
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
//! Adds [`ErrorKind::BreakerOpen`](tollgate_core::ErrorKind::BreakerOpen), certainly not sent. It
//! names server and tool, says why the breaker opened, and states the time to the next probe.
//!
//! # Telemetry
//!
//! A breaker that opens, or closes again, is one event, not one per call. [`BreakerSet::snapshot`]
//! tells the state of each.
//!
//! # Cost
//!
//! A closed breaker without failures is one look-up in a map and two atomic loads: neither letting a
//! call through nor its success writes to the breaker's state, takes its lock or reads a clock. The
//! look-up (a hash, a shared lock on a part of the map, a reference count) is most of the cost;
//! `benches/check.rs` measures both.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use tollgate_breaker::{BreakerLayer, BreakerSet};
//! use tollgate_core::{Delivery, ErrorKind, ServerId, ToolError};
//! use tollgate_testkit::{MockService, call, tool};
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
//! Inside the router, once for each server, and outside that server's concurrency limit and attempt
//! timeout: a refused call must take no permit, and a timeout must be seen as the failure it is.
//! The wrong way round, with the timeout outside, a server that hangs would only ever show dropped
//! calls, which count as nothing.

mod circuit;
mod config;
mod future;
#[cfg(all(test, shuttle))]
mod interleavings;
mod key;
mod layer;
mod permit;
mod person;
mod prune;
mod recent;
mod rejection;
mod risk;
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
