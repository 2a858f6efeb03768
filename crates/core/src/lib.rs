//! The types that every Callward crate shares.
//!
//! A [`Tool`] is one callable operation. A server states its [`Annotations`]; [`infer`] fills the
//! gaps, [`resolve`] weighs the sources, and the result is frozen into one [`CallPlan`]. Every
//! layer of the stack reads that plan and never a hint. Rules over arguments [`refine`] the plan of
//! a tool that does what an argument says. [`judge`](fn@judge) goes the whole way in one step; the
//! table at its end is a [`Profile`].
//!
//! Beside that way are [`lint`], findings for authors of servers, and [`Category`]. Neither decides
//! anything, except that a profile may plan by category.
//!
//! All layers take a [`ToolCall`] and return a [`ToolOutput`] or a [`ToolError`], which states how
//! far the call got ([`Delivery`]). So each is generic over its inner service only; the bound is
//! [`ToolService`].
//!
//! This crate has no runtime, does no I/O and reads no clock.

#![expect(
    clippy::must_use_candidate,
    reason = "types that are built step by step are `must_use`; a getter whose result is not used \
              does no harm"
)]

#[macro_use]
mod words;

mod annotations;
mod any_of;
mod ask;
mod attempt;
mod call;
mod call_meta;
mod call_stats;
mod caller;
mod category;
mod client;
mod decimal;
mod effect;
mod error;
mod fingerprint;
mod freshness;
mod glob;
pub mod human;
mod idempotency;
pub mod infer;
mod instances;
mod invalid;
mod judge;
pub mod lint;
mod members;
mod metadata;
mod method;
mod millis;
mod name;
mod one_line;
mod output;
mod peer;
mod person;
mod plan;
mod profile;
mod propagate;
pub mod readable;
pub mod redact;
pub mod refine;
pub mod resolve;
mod route;
mod server;
mod similar;
mod tool;
pub mod trail;
mod weight;

pub use annotations::{
    AnnotationProblem, Annotations, Complexity, Direction, HintChange, SecurityLevel,
};
pub use any_of::AnyOf;
pub use ask::{Approver, Ask, ConfirmOutcome, Confirmation};
pub use attempt::{Attempt, ChosenServer, Share, TimeShare};
pub use call::{CallContext, ToolCall};
pub use call_meta::CallMeta;
pub use call_stats::{CallStats, CallTotals};
pub use caller::{Caller, Credential, CredentialKind, Principal, SessionId, WithoutSession};
pub use category::Category;
pub use client::{
    CallClient, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal, LogLevel, Round,
};
pub use effect::{Effect, SafetyLevel};
pub use error::{
    Delivery, ErrorDetails, ErrorKind, FailedAttempt, LimitReached, OutcomeUnknown, Reopening,
    ToolError,
};
pub use fingerprint::FingerprintKey;
pub use freshness::{CACHE_META, Caching, Freshness, FreshnessMode};
pub use glob::{Glob, ToolGlob};
pub use idempotency::IdempotencyKey;
pub use infer::{Evidence, Inferred, RuleSet, Strength, Subject};
pub use instances::{InstanceStatus, Instances, Owner};
pub use invalid::{InvalidConfig, InvalidValue};
pub use judge::{Judgement, judge};
pub use lint::Severity;
pub use members::Members;
pub use metadata::{Domain, Metadata, words_of};
pub use method::{List, Method};
pub use name::{InvalidName, ReplicaSetId, ServerId, ToolName};
pub use one_line::{is_invisible, one_line, written_out};
pub use output::{
    InvalidOutput, OutputStatus, TaskHandle, ToolOutput, UPSTREAM_META, is_our_meta, nest_ours,
};
pub use peer::{PeerObserver, PeerOutcome, PeerRequest, PeerSession, PeerSide};
pub use person::PersonClock;
pub use plan::{
    AuditLevel, AuditRule, AuditScope, CacheRule, CallPlan, ConfirmRule, Learned, Lifetime, Limits,
    RetryRule, RouteRule,
};
pub use profile::Profile;
pub use propagate::{
    Baggage, BaggageFilter, ClientInfo, Inbound, Outbound, RequestName, SendWatch, TraceContext,
    Transport, Watch,
};
pub use refine::{Applied, ArgumentRule, ArgumentsRead, Condition, Refinements, When};
pub use resolve::{Field, Hints, Observation, Resolved, Source, Trust};
pub use route::{RouteCandidate, RouteDecision};
pub use server::{BoxFuture, BoxStream, ProgressSink, ServerEvent, ToolServer, ToolService};
pub use similar::similar;
pub use tool::{CheckArguments, InvalidDefinition, Tool, ToolDefinition, ToolOverlay};
pub use trail::{
    AttemptRecord, Authorization, CacheStatus, CallFacts, CallRecord, HedgeStatus, Stage,
    TRAIL_META, Trail, Verdict,
};
pub use weight::Weight;
