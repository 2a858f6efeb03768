//! `_meta`: what travels beside the parameters of a request.

use bytes::Bytes;

use super::object::{self, InvalidObject};
use super::write;

/// The revision a modern request is made under.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client is, on each modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can do, on each modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Which log messages the client wants during a modern request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is, on modern results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which `subscriptions/listen` a modern notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token under which progress is to be reported.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// W3C trace context, unprefixed by agreement.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace state, unprefixed by agreement.
pub const TRACESTATE: &str = "tracestate";
/// W3C baggage, unprefixed by agreement.
pub const BAGGAGE: &str = "baggage";
/// What tells that two calls are one intended call: a text of ours, see
/// [`IdempotencyKey`](callward_core::IdempotencyKey).
pub const IDEMPOTENCY_KEY: &str = "io.callward/idempotencyKey";
/// The experimental capability of a server that runs a call it gets twice under one
/// [`IDEMPOTENCY_KEY`] only once.
pub const IDEMPOTENCY: &str = "io.callward/idempotency";

/// The members of a request's `_meta` that are understood here. Raw members are raw JSON.
///
/// A member of the wrong type reads as absent: metadata never fails a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestMeta {
    /// [`PROTOCOL_VERSION`]. Its presence makes the request a modern one.
    pub protocol_version: Option<String>,
    /// [`CLIENT_INFO`], raw.
    pub client_info: Option<Bytes>,
    /// [`CLIENT_CAPABILITIES`], raw.
    pub client_capabilities: Option<Bytes>,
    /// [`LOG_LEVEL`].
    pub log_level: Option<String>,
    /// [`PROGRESS_TOKEN`], raw: a string or a number.
    pub progress_token: Option<Bytes>,
    /// [`TRACEPARENT`].
    pub traceparent: Option<String>,
    /// [`TRACESTATE`].
    pub tracestate: Option<String>,
    /// [`BAGGAGE`].
    pub baggage: Option<String>,
    /// [`IDEMPOTENCY_KEY`], raw: its readers refuse an invalid one.
    pub idempotency_key: Option<Bytes>,
}

impl RequestMeta {
    /// Reads `_meta` out of a request's raw `params`.
    ///
    /// # Errors
    ///
    /// [`InvalidObject`] if `params` or its `_meta` is not an object, or has a member read here
    /// twice.
    pub fn of(params: Option<&[u8]>) -> Result<Self, InvalidObject> {
        let Some(params) = params else {
            return Ok(Self::default());
        };
        match object::get_member(params, "_meta")? {
            Some(meta) if meta != b"null" => Self::from_json(meta),
            _ => Ok(Self::default()),
        }
    }

    /// Reads a raw `_meta` object.
    ///
    /// # Errors
    ///
    /// [`InvalidObject`] if it is not an object, or has a member read here twice.
    pub fn from_json(raw: &[u8]) -> Result<Self, InvalidObject> {
        let mut meta = Self::default();
        let mut seen = Vec::new();
        for (name, value) in object::members(raw)? {
            let owned = || Some(Bytes::copy_from_slice(value));
            match name.as_ref() {
                PROTOCOL_VERSION => meta.protocol_version = text(value),
                CLIENT_INFO => meta.client_info = owned(),
                CLIENT_CAPABILITIES => meta.client_capabilities = owned(),
                LOG_LEVEL => meta.log_level = text(value),
                PROGRESS_TOKEN => {
                    let is_token = value
                        .first()
                        .is_some_and(|b| *b == b'"' || *b == b'-' || b.is_ascii_digit());
                    meta.progress_token = if is_token { owned() } else { None };
                }
                TRACEPARENT => meta.traceparent = text(value),
                TRACESTATE => meta.tracestate = text(value),
                BAGGAGE => meta.baggage = text(value),
                IDEMPOTENCY_KEY => meta.idempotency_key = owned(),
                _ => continue,
            }
            if seen.contains(&name) {
                // the member decides something here, so two readers must not differ about it
                return object::get_member(raw, &name).map(|_| meta);
            }
            seen.push(name);
        }
        Ok(meta)
    }
}

fn text(value: &[u8]) -> Option<String> {
    serde_json::from_slice(value).ok()
}

/// Writes the `params` of a `tools/call`: name, raw arguments, and a raw `_meta` object if any.
#[must_use]
pub fn call_params(name: &str, arguments: &[u8], meta: Option<&[u8]>) -> Vec<u8> {
    let mut out =
        Vec::with_capacity(name.len() + arguments.len() + meta.map_or(0, <[u8]>::len) + 48);
    out.extend_from_slice(b"{\"name\":");
    write::string(&mut out, name);
    out.extend_from_slice(b",\"arguments\":");
    out.extend_from_slice(arguments);
    if let Some(meta) = meta {
        out.extend_from_slice(b",\"_meta\":");
        out.extend_from_slice(meta);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_is_read_and_the_rest_is_left() {
        let params = br#"{"name":"x","_meta":{"traceparent":"00-a-b-01","tracestate":7,
            "progressToken":"t\u0041","vendor/x":[1],
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let meta = RequestMeta::of(Some(params)).unwrap();
        assert_eq!(meta.traceparent.as_deref(), Some("00-a-b-01"));
        assert_eq!(meta.tracestate, None, "of the wrong type");
        assert_eq!(meta.progress_token.as_deref(), Some(&br#""t\u0041""#[..]));
        assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
        assert_eq!(RequestMeta::of(None).unwrap(), RequestMeta::default());
        assert!(RequestMeta::of(Some(br#"{"_meta":1}"#)).is_err());
        let twice = br#"{"_meta":{"traceparent":"a","traceparent":"b"}}"#;
        assert!(RequestMeta::of(Some(twice)).is_err());
    }

    #[test]
    fn arguments_go_through_untouched() {
        let params = call_params("a\"b", b"{ \"n\" : 1e2 }", Some(b"{\"x\":1}"));
        assert_eq!(
            std::str::from_utf8(&params).unwrap(),
            r#"{"name":"a\"b","arguments":{ "n" : 1e2 },"_meta":{"x":1}}"#
        );
    }
}
