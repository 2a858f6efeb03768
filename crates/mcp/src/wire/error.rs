//! The JSON-RPC error object.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::slice_of;

/// The error codes the protocol gives a meaning to.
pub(crate) mod code {
    /// Not JSON.
    pub(crate) const PARSE_ERROR: i64 = -32700;
    /// Not a request.
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    /// A failure of the side that answers.
    pub(crate) const INTERNAL_ERROR: i64 = -32603;
    /// Wrong parameters; also: unknown tool.
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    /// The mirrored headers and the body disagree (2026-07-28).
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability the client did not declare (2026-07-28).
    pub(crate) const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The revision is not supported; `data.supported` lists those that are (2026-07-28).
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
    /// A person has to open a URL first, and then call again (2025-11-25).
    pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// A JSON-RPC error: `code`, `message`, and `data` as raw JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {code})")]
#[non_exhaustive]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// A sentence for people.
    pub message: Cow<'static, str>,
    /// Raw JSON, or nothing.
    pub data: Option<Bytes>,
    /// The HTTP status of the answer it came in, if that was not a success.
    pub(crate) status: Option<u16>,
}

#[derive(Deserialize)]
#[serde(expecting = "an error object")]
struct Wire<'a> {
    code: i64,
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

impl RpcError {
    /// States an error without data.
    pub(crate) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: None,
        }
    }

    /// Adds `data`, raw JSON.
    pub(crate) fn with_data(mut self, data: impl Into<Bytes>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Reads an error object.
    ///
    /// # Errors
    ///
    /// The parser's error if it is not an object with an integer `code`.
    pub(crate) fn from_json(raw: &Bytes) -> Result<Self, serde_json::Error> {
        let wire: Wire<'_> = serde_json::from_slice(raw)?;
        Ok(Self {
            code: wire.code,
            message: wire.message.unwrap_or_default().into_owned().into(),
            data: wire.data.map(|data| slice_of(raw, data)),
            status: None,
        })
    }

    /// Appends the object to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(self.code.to_string().as_bytes());
        out.extend_from_slice(b",\"message\":");
        super::write::string(out, &self.message);
        if let Some(data) = &self.data {
            super::write::member(out, "data", data);
        }
        out.push(b'}');
    }
}
