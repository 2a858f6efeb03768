//! One JSON-RPC message, parsed as far as routing needs it.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::object::slice_of;
use super::{RequestId, RpcError, code, from_json};

/// One message. `params` and `result` are the raw bytes, slices of the buffer they came in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "JSON-RPC has these three and no others"
)]
pub enum Message {
    /// Wants an answer under its id.
    Request {
        /// To be answered under.
        id: RequestId,
        /// What to do.
        method: String,
        /// A raw JSON object, or nothing.
        params: Option<Bytes>,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: String,
        /// A raw JSON object, or nothing.
        params: Option<Bytes>,
    },
    /// The answer to a request.
    Response {
        /// The request's id; nothing where the answering side could not read it.
        id: Option<RequestId>,
        /// The raw JSON result, or the error.
        outcome: Result<Bytes, RpcError>,
    },
}

/// A text that is not a message.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidMessage {
    /// The id, where one could be read.
    id: Option<RequestId>,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("a batch is not accepted: send each message on its own")]
    Batch,
    #[error("not a JSON-RPC message: {0}")]
    Syntax(serde_json::Error),
    #[error("not a JSON-RPC message: {0}")]
    Shape(&'static str),
}

impl InvalidMessage {
    /// Returns the id, where the text had one that could be read.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Returns `true` if the text is the beginning of a message, cut off somewhere.
    pub(crate) fn is_truncated(&self) -> bool {
        matches!(&self.reason, Reason::Syntax(error) if error.is_eof())
    }

    /// Returns the error to answer such a message with.
    #[must_use]
    pub fn to_rpc_error(&self) -> RpcError {
        let code = match &self.reason {
            Reason::Syntax(error) if !error.is_data() => code::PARSE_ERROR,
            Reason::Syntax(_) | Reason::Batch | Reason::Shape(_) => code::INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from absent, which serde's `Option` does not.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage`] if the bytes are not JSON, a batch, or not one of the three kinds.
    pub fn parse(buffer: &Bytes) -> Result<Self, InvalidMessage> {
        match buffer.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') => return Err(invalid(None, Reason::Batch)),
            Some(b'{') => {}
            // serde's own error for anything else would name a struct
            _ => {
                return Err(match serde_json::from_slice::<&RawValue>(buffer) {
                    Ok(_) => invalid(None, Reason::Shape("it is not an object")),
                    Err(error) => invalid(None, Reason::Syntax(error)),
                });
            }
        }
        let envelope: Envelope<'_> =
            from_json(buffer).map_err(|error| invalid(id_of(buffer), Reason::Syntax(error)))?;
        let has_id = envelope.id.is_some();
        let id = envelope.id.and_then(|id| RequestId::from_raw(id.get()));
        let fail = |reason| invalid(id.clone(), Reason::Shape(reason));
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(fail("`jsonrpc` must be \"2.0\""));
        }
        if let Some(method) = envelope.method {
            if envelope.result.is_some() || envelope.error.is_some() {
                return Err(fail("it is both a request and an answer"));
            }
            if envelope
                .params
                .is_some_and(|params| !params.get().starts_with('{'))
            {
                return Err(fail("`params` must be an object"));
            }
            let params = envelope.params.map(|params| slice_of(buffer, params));
            let method = method.into_owned();
            return match (id, has_id) {
                (Some(id), _) => Ok(Self::Request { id, method, params }),
                (None, false) => Ok(Self::Notification { method, params }),
                (None, true) => Err(invalid(
                    None,
                    Reason::Shape("`id` must be a string or a number"),
                )),
            };
        }
        let outcome = match (envelope.result, envelope.error) {
            (Some(_), Some(_)) => return Err(fail("it has both `result` and `error`")),
            (None, None) => {
                return Err(fail("it has neither `method` nor `result` nor `error`"));
            }
            (Some(_), None) if id.is_none() => {
                return Err(fail("a result needs the id of its request"));
            }
            (Some(result), None) => Ok(slice_of(buffer, result)),
            (None, Some(error)) => match RpcError::from_json(&slice_of(buffer, error)) {
                Ok(error) => Err(error),
                Err(error) => return Err(invalid(id, Reason::Syntax(error))),
            },
        };
        Ok(Self::Response { id, outcome })
    }
}

#[cfg(any(test, fuzzing))]
impl Message {
    /// Writes the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        use super::write;

        match self {
            Self::Request { id, method, params } => write::request(id, method, params.as_deref()),
            Self::Notification { method, params } => write::notification(method, params.as_deref()),
            Self::Response { id, outcome } => match (id, outcome) {
                (Some(id), Ok(result)) => write::result(id, result),
                (None, Ok(_)) => write::error(None, &RpcError::new(0, "a result without an id")),
                (id, Err(error)) => write::error(id.as_ref(), error),
            },
        }
    }
}

fn invalid(id: Option<RequestId>, reason: Reason) -> InvalidMessage {
    InvalidMessage { id, reason }
}

/// Finds the id of a message that is not a valid one, so that its sender gets an error.
fn id_of(buffer: &[u8]) -> Option<RequestId> {
    let raw = super::object::get_member(buffer, "id").ok()??;
    RequestId::from_raw(std::str::from_utf8(raw).ok()?)
}

#[cfg(test)]
pub(super) mod tests;
