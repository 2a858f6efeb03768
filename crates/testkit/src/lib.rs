//! Scripted servers, contract probes and small builders for Tollgate's own tests. Never published.
//!
//! [`tool`] builds a [`Tool`](tollgate_core::Tool) with exactly the hints a test needs, [`MockService`]
//! answers its calls as the test says and counts what it saw, and [`contract`] checks what every
//! layer must keep.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test's helper fails by panicking"
)]

pub mod contract;
mod mock;
mod server;
mod tool;

pub use mock::{Gate, MockFuture, MockService};
pub use server::MockServer;
pub use tool::{ToolBuilder, call, tool};
