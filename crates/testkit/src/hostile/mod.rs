//! MCP servers on sockets and pipes that fail at any byte.
//!
//! [`http`] and [`pipe`] break the exchanges of a correct server with the faults of a
//! [`Chaos`](callward_chaos::Chaos); [`peer`] answers calls with arbitrary bytes.

mod exchange;
pub mod http;
pub mod peer;
pub mod pipe;
mod protocol;

pub use exchange::{Message, Stream, read};
pub use protocol::{Era, error, result};
