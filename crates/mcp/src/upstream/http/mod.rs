//! Servers behind streamable HTTP.
//!
//! There is no connection to lose: each request stands alone. What is kept is the session, which for
//! a modern server is only the knowledge that it is modern.

mod attend;
mod body;
mod client;
mod connect;
mod exchange;
mod link;
mod outgoing;
mod reports;
mod session;

pub(super) use link::HttpLink;
