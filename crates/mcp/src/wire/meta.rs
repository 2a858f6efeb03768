//! `_meta`: metadata beside the parameters of a request.

/// The revision a modern request is made under.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client is, on each modern request.
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can do, on each modern request.
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The level of log messages that a modern request asks for.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is, on modern results.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which `subscriptions/listen` a modern notification belongs to.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token under which progress is to be reported.
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
/// W3C trace context, unprefixed by agreement.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// W3C trace state, unprefixed by agreement.
pub(crate) const TRACESTATE: &str = "tracestate";
/// W3C baggage, unprefixed by agreement.
pub(crate) const BAGGAGE: &str = "baggage";
/// What tells that two calls are one intended call: a text of ours, see
/// [`IdempotencyKey`](callward_core::IdempotencyKey).
pub(crate) const IDEMPOTENCY_KEY: &str = "io.callward/idempotencyKey";
/// The experimental capability of a server that runs a call it gets twice under one
/// [`IDEMPOTENCY_KEY`] only once.
pub(crate) const IDEMPOTENCY: &str = "io.callward/idempotency";
