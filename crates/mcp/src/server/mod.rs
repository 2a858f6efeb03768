//! The server side: serves MCP clients.
//!
//! One [`Backend`] is served over stdio ([`serve_stdio`]) and over streamable HTTP ([`router`]), to
//! clients of both eras: those that begin with `initialize` (revisions 2024-11-05 to 2025-11-25)
//! and those whose every request states its own context (2026-07-28). The era is chosen per
//! request, so both kinds share one endpoint.
//!
//! **Rule.** A request that states its revision in `_meta` is modern, and so are `server/discover`
//! and `subscriptions/listen`; anything else is legacy. `initialize` or `server/discover`,
//! `tools/list`, `tools/call`, `ping` (legacy), `subscriptions/listen` (modern) and, if there is a
//! [`Subscriber`], `resources/subscribe` and `resources/unsubscribe` (legacy) are answered, and
//! each [`Method`](callward_core::Method) that the backend answers; the other lists are empty.
//! Every other method is refused as unknown.
#![doc = include_str!("details.md")]

mod answer;
mod arrival;
mod backend;
mod client;
mod conversation;
mod error;
mod http;
mod inflight;
mod intro;
mod listing;
mod progress;
mod request;
mod running;
mod service;
mod stdio;
mod subscription;

pub use self::backend::{Asked, Backend, CallRequest, Introduction, Subscriber, ToolListing};
pub use self::error::RUNTIME_ERROR;
pub use self::http::{
    Anonymous, HostPattern, HostRefused, HttpEndpoint, HttpOptions, Identified, Identify,
    OriginPattern, PATH, Refused, check_host, router,
};
pub use self::stdio::serve_stdio;
