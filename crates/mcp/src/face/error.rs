//! What a refusal looks like on the wire: the one place where failures become JSON-RPC errors.
//!
//! | what failed | code | message | `data` | HTTP |
//! | --- | --- | --- | --- | --- |
//! | the text is not JSON | −32700 | | | 400 |
//! | not one JSON-RPC message | −32600 | | | 400 |
//! | a method nobody serves | −32601 | | | 404 modern, 200 legacy |
//! | parameters | −32602 | | | 200 |
//! | `_meta` of a modern request | −32602 | | | 400 |
//! | nobody offers this tool | −32602 | names the tool | | 200 |
//! | headers and body differ | −32020 | | | 400 |
//! | protocol version | −32022 | | `requested`, `supported` | 400 |
//! | the upstream answered with a JSON-RPC error | the upstream's | the upstream's | the upstream's | 200 |
//! | anything else of our own | −32010 | the error's | see below | 200 |
//!
//! The `data` of −32010 always has five members: `kind` and `delivery` (the words of
//! [`ErrorKind`] and [`Delivery`](tollgate_core::Delivery)), `server` (or null), `retryAfterMs` (or null) and `attempts`
//! (0 where nobody counted).

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use tollgate_core::{ErrorKind, ToolError};

use super::version;

/// The code of every failure that is the runtime's own.
pub const RUNTIME_ERROR: i64 = -32010;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// A JSON-RPC error, and the status HTTP gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    pub(super) data: Option<Bytes>,
    pub(super) status: StatusCode,
}

impl Fault {
    fn new(status: StatusCode, code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status,
        }
    }

    pub(super) fn parse(reason: impl std::fmt::Display) -> Self {
        let message = format!("not JSON: {reason}");
        Self::new(StatusCode::BAD_REQUEST, PARSE_ERROR, message)
    }

    pub(super) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, message)
    }

    /// A refusal of the transport itself, before any JSON-RPC message is looked at.
    pub(super) fn transport(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, INVALID_REQUEST, message)
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        let message = format!("method not found: {method}");
        Self::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, message)
    }

    pub(super) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::OK, INVALID_PARAMS, message)
    }

    pub(super) fn invalid_meta(fields: &str) -> Self {
        let message = format!("_meta is missing or has malformed required fields: {fields}");
        Self::new(StatusCode::BAD_REQUEST, INVALID_PARAMS, message)
    }

    pub(super) fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            requested: &'a str,
            supported: [&'static str; 5],
        }
        let data = Data {
            requested,
            supported: version::KNOWN,
        };
        let mut fault = Self::new(
            StatusCode::BAD_REQUEST,
            UNSUPPORTED_VERSION,
            "unsupported protocol version",
        );
        fault.data = raw(&data);
        fault
    }

    /// Turns the failure of a call into what the client sees.
    pub(super) fn of_call(error: &ToolError, tool: &str) -> Self {
        if let Some(code) = error.code()
            && is_json_rpc(code)
        {
            let mut fault = Self::new(StatusCode::OK, code, error.message().to_owned());
            fault.data = error.data().cloned();
            return fault;
        }
        if error.kind() == ErrorKind::UnknownTool {
            return Self::invalid_params(format!("unknown tool: {tool}"));
        }
        Self::runtime(error)
    }

    /// Writes a failure of our own.
    fn runtime(error: &ToolError) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            kind: &'static str,
            delivery: &'static str,
            server: Option<&'a str>,
            retry_after_ms: Option<u64>,
            attempts: u32,
        }
        let data = Data {
            kind: error.kind().as_str(),
            delivery: error.delivery().as_str(),
            server: error.server().map(tollgate_core::ServerId::as_str),
            retry_after_ms: error
                .retry_after()
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            attempts: error.attempts(),
        };
        let mut fault = Self::new(StatusCode::OK, RUNTIME_ERROR, error.message().to_owned());
        fault.data = raw(&data);
        fault
    }
}

/// Says whether a code can be JSON-RPC's: HTTP statuses are positive.
const fn is_json_rpc(code: i64) -> bool {
    code <= -32000
}

fn raw(data: &impl Serialize) -> Option<Bytes> {
    serde_json::to_vec(data).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_core::{Delivery, ServerId};

    use super::*;

    fn text(fault: &Fault) -> &str {
        std::str::from_utf8(fault.data.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn an_upstream_s_json_rpc_error_keeps_code_message_and_data() {
        let error = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "it broke")
            .with_code(-32050)
            .with_data(Bytes::from_static(b"{\"b\": 1.0}"));
        let fault = Fault::of_call(&error, "x");
        assert_eq!((fault.code, &*fault.message), (-32050, "it broke"));
        assert_eq!(text(&fault), "{\"b\": 1.0}");
    }

    #[test]
    fn an_http_status_is_not_taken_for_a_json_rpc_code() {
        let error = ToolError::new(ErrorKind::RateLimited, Delivery::Answered, "too many calls")
            .with_code(429)
            .with_server(ServerId::new("shop").unwrap())
            .with_retry_after(Duration::from_millis(1_500))
            .with_attempts(2);
        let fault = Fault::of_call(&error, "x");
        assert_eq!((fault.code, &*fault.message), (RUNTIME_ERROR, "too many calls"));
        assert_eq!(
            text(&fault),
            r#"{"kind":"rate_limited","delivery":"answered","server":"shop","retryAfterMs":1500,"attempts":2}"#
        );
    }

    #[test]
    fn the_five_members_are_there_even_when_nothing_is_known() {
        let error = ToolError::new(ErrorKind::Internal, Delivery::NotSent, "no");
        assert_eq!(
            text(&Fault::of_call(&error, "x")),
            r#"{"kind":"internal","delivery":"not_sent","server":null,"retryAfterMs":null,"attempts":0}"#
        );
    }

    #[test]
    fn an_unknown_tool_is_named() {
        let error = ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, "no such tool");
        let fault = Fault::of_call(&error, "shop__buy");
        assert_eq!(fault.code, INVALID_PARAMS);
        assert!(fault.message.contains("shop__buy"));
    }
}
