//! Writes down who called which tool with what, in files whose every cut and edit shows.
//!
//! # Rule
//!
//! How much is written of a call stands in its plan
//! ([`AuditRule`](callward_core::AuditRule)): a full record for tools with `auditRequired`,
//! `securityLevel: restricted` or an effect that the profile records
//! ([`AuditScope`](callward_core::AuditScope)), a partial one for `internal`, none for the rest. A record is made when
//! the call ends, however it ends: answered, from a cache or by a server, failed, refused by any layer
//! inside, or cancelled by its caller. Calls that may meet things outside their server's control
//! (`openWorldHint`) go to a file of their own instead of the main one.
//!
//! # The files
//!
//! JSON lines, one record each. A line holds its number, its time, and the hash of the line before, and
//! ends with the hash of all that stands before it in the line; each file goes on where the one before
//! ended. So a line that is edited, removed, added or moved shows, and so does a file that is taken
//! away. What stands at the very end can be cut without a trace in the file; therefore a small file
//! beside it, the head, says where the log ends. [`verify()`] reads it all back. Whoever can write both
//! files can write a log anew: with a key ([`AuditKey`]) only its holder can. Nothing of this kind shows
//! that somebody put back an older copy of all files; for that, keep a copy of the head elsewhere.
//!
//! The construction is that of Schneier and Kelsey, Secure Audit Logs to Support Computer Forensics
//! (1999), with one key for the whole chain.
//!
//! # Readiness
//!
//! Ready when the inner service is.
//!
//! # Cancellation
//!
//! A call that is dropped leaves a record with the outcome `cancelled`.
//!
//! # Clone
//!
//! Clones, and all services made by one layer and its clones, write one log.
//!
//! # Errors
//!
//! Adds two, both not sent: [`Internal`](callward_core::ErrorKind::Internal) for a call that needs a full
//! record while the log cannot be written ([`OnFailure::FailClosed`]), and
//! [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded) for one that waits for room in the
//! queue ([`OnFull::Block`]) until its deadline. A call that was sent gets its answer whatever becomes
//! of its record.
//!
//! # Telemetry
//!
//! [`AuditLog::stats`] counts records that were written, dropped and failed. An event at error level
//! says that a file cannot be written, once for each time that begins; one at info level that it can
//! be again.
//!
//! # Cost
//!
//! A call that leaves no record pays for a look at its plan, and nothing is allocated. One that does
//! pays for three allocations, two readings of a clock, and a message to the thread that writes;
//! redaction, hashing and files are that thread's. With [`Fsync::EveryRecord`] it waits for the disk.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use callward_audit::{AuditConfig, AuditLayer, AuditLog, verify};
//! use callward_core::ToolOutput;
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("audit.jsonl");
//! let log = AuditLog::open(&AuditConfig::new(&path))?;
//! let server = MockService::new(|_, _| async { Ok(ToolOutput::text("done")) });
//! let service = ServiceBuilder::new()
//!     .layer(AuditLayer::new(log.clone()))
//!     .service(server);
//!
//! let refund = tool("refund").hint(|hints| hints.audit_required = Some(true)).build();
//! service.oneshot(call(&refund, json!({"order": 7, "token": "t0k3n"}))).await?;
//! log.close().await;
//!
//! let text = std::fs::read_to_string(&path)?;
//! assert!(text.contains(r#""arguments":{"order":7,"token":"[redacted]"}"#));
//! let report = verify(&[path], None, &mut |_| {})?.remove(0);
//! assert!(report.is_whole());
//! assert_eq!(report.calls, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Outside of everything but the call span: what a cache answers, a limit refuses or a person declines
//! leaves a record too. The wrong way round, inside of a cache, nobody would know who was shown what.

mod chain;
mod config;
mod event;
mod future;
mod layer;
mod log;
mod notes;
mod scan;
mod service;
mod stats;
mod time;
mod verify;
mod watch;

pub use chain::AuditKey;
pub use config::{AuditConfig, Bodies, Fsync, OnFailure, OnFull};
pub use future::AuditFuture;
pub use layer::AuditLayer;
pub use log::{AuditLog, OpenError};
pub use service::Audit;
pub use stats::AuditStats;
pub use verify::{Fault, Progress, Report, files, verify};
