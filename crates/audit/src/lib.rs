//! A tamper-evident audit log of tool calls.
//!
//! The plan of a call decides how much is recorded ([`AuditRule`](callward_core::AuditRule)). Every
//! call that needs a record has one when it ends: answered, failed, refused or cancelled. Each JSON
//! line holds the hash of the line before, so [`verify()`] detects edited, removed, added and moved
//! lines and files, and a log that was not closed. `docs/audit.md` documents the format, and the
//! limit on records that a killed process loses.
//!
//! # Errors
//!
//! [`Internal`](callward_core::ErrorKind::Internal), not sent: the log cannot be written
//! ([`OnFailure::FailClosed`]). [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded),
//! not sent: the queue was full until the deadline ([`OnFull::Block`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use callward_audit::{AuditConfig, AuditLayer, AuditLog, verify};
//!
//! let log = AuditLog::open(&AuditConfig::new("audit.jsonl"))?;
//! let layer = AuditLayer::new(log.clone());
//! // ... outside of the cache, so that cached answers are recorded too
//! log.close().await;
//! assert!(verify(&["audit.jsonl".into()], None)?[0].is_whole());
//! # Ok(()) }
//! ```

mod chain;
mod config;
mod event;
mod log;
mod notes;
mod service;
mod time;
mod verify;
mod watch;

pub use chain::AuditKey;
pub use config::{AuditConfig, Bodies, Fsync, OnFailure, OnFull};
pub use log::{AuditLog, AuditStats};
pub use service::{Audit, AuditFuture, AuditLayer};
pub use verify::{Fault, Report, files, verify};
