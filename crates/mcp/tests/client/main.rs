//! The upstream client against scripted servers, byte by byte, and against real ones.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are not covered by the allowance for tests"
)]

mod asked;
mod boundary;
mod child;
mod eras;
mod failures;
mod greeting;
mod http;
mod http_sse;
mod http_streams;
mod instances;
mod keys;
mod pipe;
mod pipe_faults;
mod rmcp_servers;
mod script;
mod script_http;
