//! Scripted servers, contract probes and small builders for Callward's own tests. Never published.
//!
//! [`tool`] builds a [`Tool`](callward_core::Tool) with exactly the hints a test needs, [`MockService`]
//! answers its calls as the test says and counts what it saw, and [`contract`] checks what every
//! layer must keep. Two programs judge the rules: `score` measures inference on labelled tools
//! ([`mod@score`]), `parity` compares our answers with NeuroLink's ([`parity`]). What must hold of
//! any listed tool is checked by [`fuzz`]. Servers that fail at every point of an exchange, and
//! count what they ran, are [`chaos`]; [`truth`] holds what callers were told against that. Servers of a
//! simulation are made of a [`WorkQueue`], and its benches share [`mod@bench`]; others measure in several
//! [`processes`]. Tables of documents are held to the code by [`page`].
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test's helper fails by panicking"
)]

pub mod args;
mod at_once;
pub mod bench;
pub mod calls;
#[cfg(feature = "collector")]
pub mod collector;
pub mod contract;
pub mod hostile;
mod mock;
pub mod page;
pub mod parity;
pub mod processes;
pub mod score;
mod server;
mod share;
mod tool;
pub mod truth;
mod work_queue;

pub use at_once::AtOnce;
pub use callward_chaos as chaos;
pub use mock::{Gate, MockFuture, MockService};
pub use server::{MockServer, Ping};
pub use share::share;
pub use tool::{ToolBuilder, call, tool};
pub use work_queue::WorkQueue;
