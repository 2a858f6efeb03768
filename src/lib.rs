//! An async runtime for the tool calls of AI agents.
//!
//! Callward reads what each tool says about itself (its annotations), fills the gaps by inference,
//! and lets that one verdict decide everything about a call: which server gets it, whether its
//! result may be cached and for how long, whether a failure may be repeated, and what is written
//! down about it.
//!
//! [`Stack`] is the whole of it: Tower layers in a fixed order around any number of servers.
//! In-process tools ([`Tools`]) and MCP servers stand side by side; both are
//! [`ToolServer`]s.
//!
//! ```
//! use serde_json::{Value, json};
//! use callward::{Stack, ToolSpec, Tools};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = Tools::new("greet")?.tool(
//!     ToolSpec::new("get_greeting").description("Returns a greeting"),
//!     |args: Value| async move {
//!         let name = args["name"].as_str().ok_or("`name` is missing")?;
//!         Ok::<_, &str>(format!("hello {name}"))
//!     },
//! )?;
//! let stack = Stack::builder().server(greet).build().await?;
//!
//! let output = stack.call("greet.get_greeting", json!({"name": "Ada"})).await?;
//! assert_eq!(output.to_text(), "hello Ada");
//! // the name says it only reads, so the second identical call is answered from the cache
//! stack.call("greet.get_greeting", json!({"name": "Ada"})).await?;
//! assert_eq!(stack.cache_stats().hits, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Settings
//!
//! A [`Server`] says how far a server is believed ([`Trust`]) and what its operator knows better:
//! hints for all of its tools, hints for one, and rules for calls with certain arguments
//! ([`ArgumentRule`]). The builder picks a [`Profile`], the table from hints to plans, and the
//! rules and verbs that fill gaps ([`RuleSet`], [`Lexicon`](core::infer::Lexicon)).
//! [`Stack::explain`] and [`Stack::explain_call`] say what comes of it all.
//!
//! # Order
//!
//! Outside to inside: call span, audit, cache, loop guard, retry, hedge, rate limit, attempt span,
//! router; then, per server, its breaker, the tool's breaker, rate limit, concurrency limit,
//! attempt timeout and the leaf. [`Stack`] is the only place that knows it; each layer is an
//! ordinary Tower layer and works alone: see [`audit`], [`cache`], [`loopguard`], [`retry`],
//! [`router`], [`limit`], [`breaker`] and [`telemetry`].

mod admit;
mod builder;
mod change;
mod discovery;
mod explain;
mod leaf;
mod learned;
mod limits;
mod local;
mod metrics;
mod order;
mod ping;
mod roster;
mod scan;
mod scopes;
mod server;
mod service;
mod shutdown;
mod stack;

pub use builder::{BuildError, StackBuilder};
pub use callward_core::infer::RuleSet;
pub use callward_core::{
    Annotations, ArgumentRule, CacheStatus, Caching, CallPlan, CallRecord, Caller, Condition,
    Delivery, Effect, ErrorKind, FreshnessMode, IdempotencyKey, Instances, Principal, Profile,
    ReplicaSetId, ServerId, SessionId, Tool, ToolCall, ToolDefinition, ToolError, ToolName,
    ToolOutput, ToolServer, ToolService, Trail, Trust, Weight, When,
};
pub use callward_router::{Drained, Draining, UnknownServer};
pub use change::Startup;
pub use discovery::DiscoveryConfig;
pub use explain::{Candidate, Explanation};
pub use learned::LearnedLifetime;
pub use limits::{LimitStatus, LimitsConfig, ServerLimitStatus};
pub use local::{IntoToolOutput, Json, ToolSpec, Tools};
pub use ping::PingConfig;
pub use roster::{Listings, ServerStatus};
pub use server::Server;
pub use service::{StackFuture, StackService};
pub use stack::Stack;

pub use callward_audit as audit;
pub use callward_breaker as breaker;
pub use callward_cache as cache;
pub use callward_core as core;
pub use callward_limit as limit;
pub use callward_loopguard as loopguard;
pub use callward_registry as registry;
pub use callward_retry as retry;
#[cfg(feature = "backoff")]
pub use callward_retry::backoff;
pub use callward_router as router;
pub use callward_telemetry as telemetry;

/// The README's example is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
