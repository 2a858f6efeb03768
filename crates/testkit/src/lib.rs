//! Test support. Never published.
//!
//! - [`tool`] and [`call`] build tools and calls, [`MockService`] and [`MockServer`] answer them by
//!   a script, [`MockClient`] answers questions of servers, and [`contract`] checks what every
//!   layer must keep.
//! - [`chaos`] and [`hostile`] are servers that fail at any point of an exchange and count their
//!   executions; [`truth`] compares these counts with the answers that callers got.
//! - [`mod@score`] measures inference on labelled tools, and [`parity`] compares our answers with
//!   those of NeuroLink; both have a binary.
//! - [`WorkQueue`] is the base of simulated servers.
//! - [`page`] compares the tables of documents with the code.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test's helper fails by panicking"
)]
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::must_use_candidate,
    reason = "it is never published, so no other crate depends on a version of it"
)]

pub mod calls;
mod client;
#[cfg(feature = "collector")]
pub mod collector;
pub mod contract;
pub mod hostile;
mod mock;
pub mod page;
pub mod parity;
pub mod recorded;
pub mod score;
mod server;
mod share;
mod tool;
pub mod truth;
mod work_queue;

pub use callward_chaos as chaos;
pub use client::MockClient;
pub use mock::{Gate, MockService, at_once};
pub use server::{MockServer, Ping};
pub use share::share;
pub use tool::{ToolBuilder, call, tool};
pub use work_queue::WorkQueue;
