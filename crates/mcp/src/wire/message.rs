//! One JSON-RPC message, taken apart as far as routing needs it.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{RpcError, code};

/// A request's id: a string or a number, written back exactly as it came.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// A number whose only spelling is its decimal digits, so that it needs no allocation.
    Number(u64),
    /// Any other number, or a string with its quotes.
    Raw(Box<str>),
}

impl RequestId {
    /// Makes a number an id.
    #[must_use]
    pub const fn number(number: u64) -> Self {
        Self(Repr::Number(number))
    }

    /// Makes a text an id.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let mut raw = Vec::with_capacity(text.len() + 2);
        super::write::string(&mut raw, text);
        Self(Repr::Raw(
            String::from_utf8_lossy(&raw).into_owned().into_boxed_str(),
        ))
    }

    /// Reads a raw JSON token; nothing unless it is a string or a number.
    #[must_use]
    pub fn from_raw(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches([' ', '\t', '\r', '\n']);
        let first = raw.as_bytes().first()?;
        if !(first.is_ascii_digit() || *first == b'-' || *first == b'"') {
            return None;
        }
        serde_json::from_str::<&RawValue>(raw).ok()?;
        // JSON allows no leading zero, so digits alone have one spelling only
        Some(Self(match raw.parse::<u64>() {
            Ok(number) => Repr::Number(number),
            Err(_) => Repr::Raw(raw.into()),
        }))
    }

    /// Returns the number, if the id is a whole one that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Raw(_) => None,
        }
    }

    /// Returns the id as a JSON token.
    #[must_use]
    pub fn to_raw(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Number(number) => Cow::Owned(number.to_string()),
            Repr::Raw(raw) => Cow::Borrowed(raw),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Raw(raw) => f.write_str(raw),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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

/// Bytes that are no message, and why.
#[derive(Debug)]
pub struct InvalidMessage {
    id: Option<RequestId>,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Batch,
    Syntax(serde_json::Error),
    Shape(&'static str),
}

impl InvalidMessage {
    /// Returns the id, where the text had one that could be read.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
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

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Batch => f.write_str("a batch is not accepted: send each message on its own"),
            Reason::Syntax(error) => write!(f, "not a JSON-RPC message: {error}"),
            Reason::Shape(reason) => write!(f, "not a JSON-RPC message: {reason}"),
        }
    }
}

impl std::error::Error for InvalidMessage {}

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
            // serde's own error for anything else would speak of a struct
            _ => {
                return Err(match serde_json::from_slice::<&RawValue>(buffer) {
                    Ok(_) => invalid(None, Reason::Shape("it is not an object")),
                    Err(error) => invalid(None, Reason::Syntax(error)),
                });
            }
        }
        let envelope: Envelope<'_> = serde_json::from_slice(buffer)
            .map_err(|error| invalid(id_of(buffer), Reason::Syntax(error)))?;
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
        match (envelope.result, envelope.error) {
            (Some(_), Some(_)) => Err(fail("it has both `result` and `error`")),
            (None, None) => Err(fail("it has neither `method` nor `result` nor `error`")),
            (Some(_), None) if id.is_none() => Err(fail("a result needs the id of its request")),
            (Some(result), None) => Ok(Self::Response {
                id,
                outcome: Ok(slice_of(buffer, result)),
            }),
            (None, Some(error)) => match RpcError::from_json(&slice_of(buffer, error)) {
                Ok(error) => Ok(Self::Response {
                    id,
                    outcome: Err(error),
                }),
                Err(error) => Err(invalid(id, Reason::Syntax(error))),
            },
        }
    }

    /// Writes the message, without a line break at its end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Request { id, method, params } => {
                super::write::request(id, method, params.as_deref())
            }
            Self::Notification { method, params } => {
                super::write::notification(method, params.as_deref())
            }
            Self::Response {
                id: Some(id),
                outcome: Ok(result),
            } => super::write::result(id, result),
            Self::Response {
                id: None,
                outcome: Ok(_),
            } => super::write::error(
                None,
                &RpcError::new(code::INTERNAL_ERROR, "a result without an id"),
            ),
            Self::Response {
                id,
                outcome: Err(error),
            } => super::write::error(id.as_ref(), error),
        }
    }
}

fn invalid(id: Option<RequestId>, reason: Reason) -> InvalidMessage {
    InvalidMessage { id, reason }
}

/// Finds the id of a message that is no valid one, so that its sender can be told.
fn id_of(buffer: &[u8]) -> Option<RequestId> {
    let raw = super::object::get_member(buffer, "id").ok()??;
    RequestId::from_raw(std::str::from_utf8(raw).ok()?)
}

/// Returns `part` as a slice of `buffer` that keeps the buffer alive; a copy if it lies elsewhere.
pub(super) fn slice_of(buffer: &Bytes, part: &RawValue) -> Bytes {
    let part = part.get().as_bytes();
    // no arithmetic on the pointers themselves: only their distance is used, and it is checked
    let start = (part.as_ptr() as usize).wrapping_sub(buffer.as_ptr() as usize);
    match start.checked_add(part.len()) {
        Some(end) if end <= buffer.len() => buffer.slice(start..end),
        _ => Bytes::copy_from_slice(part),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Message, InvalidMessage> {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn params_and_results_are_the_bytes_that_came() {
        let odd = r#"{ "z" : 1e2, "a":"\u0041" , "n": 12345678901234567890.00 }"#;
        let buffer = Bytes::from(format!(
            r#" {{"params":{odd}, "id":"x\u0041","method":"tools/call","jsonrpc":"2.0","y":0}} "#
        ));
        let Message::Request { id, method, params } = Message::parse(&buffer).unwrap() else {
            panic!("a request");
        };
        assert_eq!(id.to_raw(), r#""x\u0041""#);
        assert_eq!(method, "tools/call");
        let params = params.unwrap();
        assert_eq!(&params[..], odd.as_bytes());
        assert!(
            buffer.as_ptr_range().contains(&params.as_ptr()),
            "a slice of the buffer, not a copy"
        );
        let answer = parse(&format!(r#"{{"jsonrpc":"2.0","id":-1.50,"result":{odd}}}"#)).unwrap();
        let Message::Response {
            id: Some(id),
            outcome: Ok(result),
        } = answer
        else {
            panic!("an answer");
        };
        assert_eq!(id.to_raw(), "-1.50");
        assert_eq!(&result[..], odd.as_bytes());
    }

    #[test]
    fn null_is_a_result_but_no_id() {
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
            Ok(Message::Response { outcome: Ok(result), .. }) if &result[..] == b"null"
        ));
        assert!(parse(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#).is_err());
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#),
            Ok(Message::Response { id: None, outcome: Err(error) }) if error.code == -32700
        ));
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_right_code_and_id() {
        let cases = [
            ("", code::PARSE_ERROR, None),
            ("{", code::PARSE_ERROR, None),
            ("nonsense", code::PARSE_ERROR, None),
            ("7", code::INVALID_REQUEST, None),
            ("{}", code::INVALID_REQUEST, None),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                code::INVALID_REQUEST,
                None,
            ),
            (
                r#"{"id":4,"method":"ping"}"#,
                code::INVALID_REQUEST,
                Some(4),
            ),
            (
                r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
                code::INVALID_REQUEST,
                Some(5),
            ),
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"x","params":[1]}"#,
                code::INVALID_REQUEST,
                Some(6),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1}}"#,
                code::INVALID_REQUEST,
                Some(7),
            ),
            (
                r#"{"jsonrpc":"2.0","id":8,"error":"no"}"#,
                code::INVALID_REQUEST,
                Some(8),
            ),
        ];
        for (text, code, id) in cases {
            let error = parse(text).expect_err(text);
            assert_eq!(error.to_rpc_error().code, code, "{text}");
            assert_eq!(error.id().and_then(RequestId::as_u64), id, "{text}");
        }
        let batch = parse("[]").expect_err("a batch").to_string();
        assert!(batch.contains("batch"), "{batch}");
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn id() -> impl Strategy<Value = RequestId> {
        prop_oneof![
            any::<u64>().prop_map(RequestId::number),
            any::<i64>().prop_map(|n| RequestId::from_raw(&n.to_string()).unwrap()),
            any::<String>().prop_map(|text| RequestId::string(&text)),
        ]
    }

    fn object() -> impl Strategy<Value = Option<Bytes>> {
        prop::option::of(
            prop::collection::btree_map(any::<String>(), json(), 0..4).prop_map(|map| {
                Bytes::from(serde_json::Value::Object(map.into_iter().collect()).to_string())
            }),
        )
    }

    fn message() -> impl Strategy<Value = Message> {
        let error = (any::<i64>(), any::<String>(), prop::option::of(json())).prop_map(
            |(code, message, data)| {
                let error = RpcError::new(code, message);
                match data {
                    // an absent and a null `data` say the same and are read as the same
                    Some(data) if !data.is_null() => error.with_data(data.to_string()),
                    _ => error,
                }
            },
        );
        prop_oneof![
            (id(), any::<String>(), object()).prop_map(|(id, method, params)| Message::Request {
                id,
                method,
                params
            }),
            (any::<String>(), object())
                .prop_map(|(method, params)| Message::Notification { method, params }),
            (id(), json()).prop_map(|(id, result)| Message::Response {
                id: Some(id),
                outcome: Ok(result.to_string().into()),
            }),
            (prop::option::of(id()), error).prop_map(|(id, error)| Message::Response {
                id,
                outcome: Err(error),
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(message in message()) {
            let bytes = Bytes::from(message.to_bytes());
            prop_assert_eq!(Message::parse(&bytes).unwrap(), message);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let bytes = Bytes::from(bytes);
            if let Err(error) = Message::parse(&bytes) {
                let _ = error.to_rpc_error();
            }
        }

        #[test]
        fn a_damaged_message_never_panics(
            message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut bytes = message.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Message::parse(&Bytes::from(bytes));
        }
    }
}
