//! An async runtime for the tool calls of AI agents.
//!
//! Callward reads the annotations of each tool, fills gaps by inference, and derives one plan from
//! them. The plan decides everything about a call: which server gets it, whether its result may be
//! cached and for how long, whether a failed call may be retried, and what is logged.
//!
//! A [`Stack`] puts Tower layers in a fixed order around any number of servers. In-process tools
//! ([`Tools`]) and MCP servers stand side by side; both are [`ToolServer`]s.
#![doc = include_str!("details.md")]

#[cfg(not(all(
    feature = "approval",
    feature = "audit",
    feature = "auth",
    feature = "guardrail",
    feature = "telemetry"
)))]
mod absent;
mod admit;
#[cfg(feature = "approval")]
mod approvals;
#[cfg(feature = "audit")]
mod audit_log;
#[cfg(feature = "auth")]
mod authorized;
mod builder;
mod change;
mod discovery;
mod explain;
#[cfg(feature = "guardrail")]
mod guardrails;
mod leaf;
mod learned;
mod limits;
mod local;
mod measured;
#[cfg(feature = "telemetry")]
mod metrics;
mod observed;
mod order;
mod ping;
pub mod plugin;
mod roster;
mod scan;
mod scopes;
mod server;
mod service;
mod shared;
mod stack;
mod statistics;
mod tower_error;

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
pub use discovery::{Discovery, DiscoveryWarning, Withheld};
pub use explain::{Candidate, Explanation};
pub use learned::LearnedLifetime;
pub use limits::{LimitStatus, LimitsConfig, ServerLimitStatus};
pub use local::{IntoToolOutput, Json, ToolSpec, Tools};
pub use ping::PingConfig;
pub use roster::{Listings, ServerStatus};
pub use server::Server;
pub use service::{StackFuture, StackService};
pub use stack::Stack;
pub use statistics::{ServerStatistics, Statistics, ToolStatistics};
pub use tower_error::tool_error;

#[cfg(feature = "approval")]
pub use callward_approval as approval;
#[cfg(feature = "audit")]
pub use callward_audit as audit;
#[cfg(feature = "auth")]
pub use callward_auth as auth;
pub use callward_breaker as breaker;
pub use callward_cache as cache;
pub use callward_core as core;
#[cfg(feature = "guardrail")]
pub use callward_guardrail as guardrail;
pub use callward_limit as limit;
pub use callward_loopguard as loopguard;
pub use callward_registry as registry;
pub use callward_retry as retry;
#[cfg(feature = "backoff")]
pub use callward_retry::backoff;
pub use callward_router as router;
#[cfg(feature = "telemetry")]
pub use callward_telemetry as telemetry;

/// The README's example is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
