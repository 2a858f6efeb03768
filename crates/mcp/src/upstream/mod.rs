//! Upstream servers: the leaves of the stack, over pipes and streamable HTTP.
//!
//! An [`Upstream`] is one MCP server as a [`ToolServer`](callward_core::ToolServer). It finds out
//! which era the server belongs to, keeps the connection, and brings it back after every failure,
//! for ever. Definitions, arguments and results go through as the bytes they are.
//!
//! **Rule.** A call is sent once. It is sent again only where the server has certainly not run it:
//! its session had ended (HTTP 404, and no answer to this very request), or its mirrored headers
//! were refused (HTTP 400 with −32020). The HTTP client itself repeats nothing that it took from
//! us, and follows no redirect. Everything else is reported with its
//! [`Delivery`](callward_core::Delivery), and anyone who knows the tool decides.
//!
//! **Readiness.** [`Upstream::start`](UpstreamBuilder::start) never waits and never fails. A call
//! to a child process that is down fails at once, as not sent. HTTP has no connection to wait for,
//! so such a call is tried.
//!
//! **Keys.** A server that declares the experimental capability `io.callward/idempotency` promises
//! to run a call once however often it gets it under one key. It is sent the call's
//! [`IdempotencyKey`](callward_core::IdempotencyKey), the same over all attempts; so is one for
//! which [`idempotency_keys`](UpstreamBuilder::idempotency_keys) says so, since most that know keys
//! do not declare it.
//!
//! **Cancellation.** Dropping a call's future tells the server: `notifications/cancelled` on pipes
//! and for legacy HTTP, a closed response stream for modern HTTP. A call still in the queue is
//! taken out of it and never written.
//!
//! **Clone.** Handles share one connection. The last one dropped ends it, and the child with it; a
//! running call counts as a handle.
//!
//! **Processes.** All that a child has started ends with it: when the handles are dropped, when it
//! dies, and when this process dies. On Linux that takes a supervisor
//! ([`UpstreamBuilder::supervisor`]). Without one, and on other systems, the child's process group
//! is killed: a process that has left the group stays, and so do all if this process is ended by
//! SIGKILL and they do not end with their input.
//!
//! **Instances.** A call whose tool says so ([`Tool::instances`](callward_core::Tool::instances))
//! goes to an instance that only its owner uses: a child, or an HTTP session, of its own. It is
//! started with the owner's first call, which waits for it up to
//! [`connect_timeout`](UpstreamBuilder::connect_timeout), and ends with the owner's session or when
//! it is [`idle`](UpstreamBuilder::idle). All other calls go to the instance that lists the tools;
//! the first owner gets that one too. It ends like any other, and is started again at once if
//! [`spare`](UpstreamBuilder::spare) ones are kept, else with the next call or listing. Meanwhile
//! the upstream is up. An HTTP server that speaks both eras lists its tools in the modern one,
//! which has no sessions: there each owner with a session gets one of the server's legacy sessions,
//! if the server opens them.
//!
//! **Errors.** Each says how far the call got, and is on the safe side where that cannot be known.
//! What was only partly written counts as not sent: a message without its last bracket is not JSON,
//! and no server runs what it cannot parse. `Answered` is not a promise that nothing happened.
//!
//! | failure | kind | delivery |
//! | --- | --- | --- |
//! | the host has no address | `ConnectFailed` | `NotSent` |
//! | the connection is refused | `ConnectFailed` | `NotSent` |
//! | TLS fails: no one vouches for the certificate, or the server speaks no TLS | `ConnectFailed` | `NotSent` |
//! | no connection, or no greeting, within [`connect_timeout`](UpstreamBuilder::connect_timeout); over a pipe, no greeting within [`greeting_timeout`](UpstreamBuilder::greeting_timeout) | `ConnectFailed` | `NotSent` |
//! | the greeting is refused with HTTP 401, 403 or 407 | `Unauthorized` | `NotSent` |
//! | the greeting is put off with HTTP 429 | `RateLimited` | `NotSent` |
//! | the greeting fails otherwise | `ConnectFailed` | `NotSent` |
//! | a child cannot be started, has died, or is being started again (1) | `ConnectFailed` | `NotSent` |
//! | a child has closed its input | `ConnectFailed` | `NotSent` |
//! | over 64 MiB wait for a child that does not read | `ConnectFailed` | `NotSent` |
//! | the upstream was shut down | `ConnectFailed` | `NotSent` |
//! | all of [`max_instances`](UpstreamBuilder::max_instances) are in use by others, or hold their state | `Overloaded` | `NotSent` |
//! | HTTP: all of [`max_connections`](UpstreamBuilder::max_connections) are in use | `Overloaded` | `NotSent` |
//! | the arguments are no JSON object, or cannot be mirrored into headers | `InvalidCall` | `NotSent` |
//! | a pipe breaks before it has taken the last bracket of the call | `ConnectionLost` | `NotSent` |
//! | HTTP: the connection breaks before it has taken the last byte of the request | `ConnectionLost` | `NotSent` |
//! | the connection is lost after that, without an answer | `ConnectionLost` | `Unknown` |
//! | an answer breaks off | `ConnectionLost` | `Unknown` |
//! | an event stream ends without the answer, and cannot be resumed | `ConnectionLost` | `Unknown` |
//! | HTTP 3xx: redirects are not followed | `Protocol` | `Answered` |
//! | HTTP 401, 403 or 407 | `Unauthorized` | `Answered` |
//! | HTTP 408 | `Timeout` | `Answered` |
//! | HTTP 429 | `RateLimited` | `Answered` |
//! | HTTP 4xx, another one, without a JSON-RPC error | `InvalidCall` | `Answered` |
//! | HTTP 5xx | `ServerFault` | `Answered` |
//! | JSON-RPC −32700, −32600…−32602, −32021 | `InvalidCall` | `Answered` |
//! | JSON-RPC −32020, −32022 | `Protocol` | `Answered` |
//! | JSON-RPC, any other code | `ServerFault` | `Answered` |
//! | HTTP: the answer belongs to another request | `Protocol` | `Unknown` |
//! | an answer cannot be read, by us or by many clients, or is not a tool result | `Protocol` | `Answered` |
//! | an answer, or an event of one, longer than [`max_message`](UpstreamBuilder::max_message) (2) | `TooLarge` | `Answered` |
//! | the server forgets the session of the call | `SessionLost` | `Unknown` |
//!
//! (1) For five seconds after the loss the error tells when the server is back
//! ([`ToolError::reopening`](callward_core::ToolError::reopening)).
//!
//! (2) Over a pipe the rest of the message is skipped, and its `id` tells whose answer it was;
//! calls of other answers, and the process, are not affected. A message without an `id` is dropped
//! with a warning.
//!
//! Over HTTP the bytes of a request that have left cannot be counted, only those that the
//! connection has asked us for: it asks for all of a request below some hundred kilobytes at once.
//! So an early loss of such a request reads as `Unknown`, also where the server had closed a
//! connection that was kept for reuse; unused ones are therefore given up after four seconds,
//! before most servers do.
//!
//! Codes, `data` and `Retry-After` (seconds, or a date beside the answer's own `Date`) are kept. A
//! call has no timeout here, and one that is given up has no error: anyone who gives it up has to
//! say `Unknown`. Listings alone have a time limit: `Timeout`.
//!
//! ```
//! use callward_core::{ServerId, ToolServer};
//! use callward_mcp::upstream::{CommandSpec, Target, Upstream};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let command = CommandSpec::new("mcp-server-time").with_arg("--local-timezone=UTC");
//! let time = Upstream::builder(ServerId::new("time")?, Target::Command(command)).start();
//! time.ready(std::time::Duration::from_secs(30)).await?;
//! for tool in time.list_tools().await? {
//!     println!("{}", tool.name());
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod ask;
mod backoff;
mod builder;
mod carried;
mod handle;
mod handshake;
mod http;
mod info;
mod instances;
mod list;
mod peer;
pub(crate) mod pipe;
mod shared;
mod target;

pub use builder::{EraChoice, UpstreamBuilder};
pub use handle::Upstream;
#[cfg(fuzzing)]
pub(crate) use http::events as http_events;
pub use info::ServerInfo;
pub use shared::UpstreamStatus;
pub use target::{CommandSpec, Connect, HttpSpec, InvalidHttpSpec, Io, Target};
