//! The serving face: what MCP clients talk to.
//!
//! One [`Backend`] is served over stdio ([`serve_stdio`]) and over streamable HTTP ([`router`]), to
//! clients of both eras: those that begin with `initialize` (revisions 2024-11-05 to 2025-11-25)
//! and those whose every request states its own context (2026-07-28). The era is chosen per
//! request, so both kinds share one endpoint.
//!
//! **Rule.** A request that states its revision in `_meta` is modern, and so are `server/discover`
//! and `subscriptions/listen`; anything else is legacy. Only tools are offered, and word of their
//! changes: `initialize` or `server/discover`, `tools/list`, `tools/call`, `ping` (legacy) and
//! `subscriptions/listen` (modern) are answered; `prompts/list`, `resources/list` and
//! `resources/templates/list` are answered with empty lists, every other method is refused as
//! unknown.
//!
//! **Browsers.** Pages of the origins in [`HttpOptions::allowed_origins`] may use the endpoint:
//! their preflight requests (`OPTIONS`) are answered, and responses carry
//! `Access-Control-Allow-Origin` with that origin. Other origins are refused, without any such
//! header.
//!
//! **Fidelity.** Tools and results are passed on byte for byte. Three things are spliced in: a
//! modern result without a `resultType` gets one, progress gets the client's own token, and raw
//! line breaks between JSON tokens become spaces where a transport frames by lines.
//!
//! **Keys.** A client may name a call, so that it means the same call whenever it comes again:
//! `io.callward/idempotencyKey` in `_meta`, or over HTTP the header `Idempotency-Key`, one to 64
//! visible ASCII characters. What is not a such name is refused, and so are two that differ. The
//! name is passed on to servers that take keys; the face itself remembers no call, and so declares
//! no such capability.
//!
//! **Startup.** A request whose answer depends on servers that are starting waits as long as
//! [`Backend::starting`] says; other requests of the client are served meanwhile.
//!
//! **Cancellation.** A call lives in the future that answers it. It is dropped when the client
//! cancels it, when the client's connection ends (HTTP), or when its session is deleted.
//!
//! **Errors.** An upstream's JSON-RPC error is passed on; a failure of the runtime's own says in
//! its `data` how far the call got. [`RUNTIME_ERROR`] has the table.
//!
//! **Trust.** What stands in front of the router says who calls, by a request extension. Without
//! it, every HTTP client is the principal `anonymous`. A session belongs to the principal that
//! opened it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use futures_util::StreamExt;
//! use callward_core::{BoxFuture, BoxStream, ToolError, ToolOutput};
//! use callward_mcp::face::{self, Backend, CallRequest, FaceInfo, HttpOptions, ToolListing};
//!
//! struct Echo;
//!
//! impl Backend for Echo {
//!     fn info(&self) -> FaceInfo {
//!         FaceInfo::new("echo", "1.0.0")
//!     }
//!
//!     fn tools(&self) -> Arc<ToolListing> {
//!         let echo = Bytes::from_static(br#"{"name":"echo","inputSchema":{"type":"object"}}"#);
//!         Arc::new(ToolListing::new(1, vec![echo]))
//!     }
//!
//!     fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
//!         let text = String::from_utf8_lossy(&request.arguments).into_owned();
//!         Box::pin(async move { Ok(ToolOutput::text(text)) })
//!     }
//!
//!     fn changes(&self) -> BoxStream<'static, ()> {
//!         futures_util::stream::pending().boxed()
//!     }
//! }
//!
//! let router: axum::Router = face::router(Arc::new(Echo), HttpOptions::default());
//! # drop(router);
//! ```

mod answer;
mod arrival;
mod backend;
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

pub use self::backend::{Asked, Backend, CallRequest, FaceInfo, ToolListing};
pub use self::error::RUNTIME_ERROR;
pub use self::http::{
    HostPattern, HostRefused, HttpOptions, InvalidOption, OriginPattern, check_host, router,
};
pub use self::stdio::serve_stdio;
