//! The server side, as clients see it: rmcp over both transports, and raw messages.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod backend;
mod clients;
mod http;
mod http_calls;
mod http_cors;
mod http_streams;
mod refusals;
mod stdio;
