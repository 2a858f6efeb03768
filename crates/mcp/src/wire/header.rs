//! HTTP headers of the streamable HTTP transport, and the encoding of their values.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AsHeaderName, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

/// The revision of the request; equal to the one in `_meta` where there is one.
pub(crate) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The session of a legacy peer.
pub(crate) static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The last event that the client has of a stream to be resumed.
pub(crate) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The JSON-RPC method, mirrored (2026-07-28).
pub(crate) static METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool's name, mirrored (2026-07-28). Encoded by [`encode_value`].
pub(crate) static NAME: HeaderName = HeaderName::from_static("mcp-name");
/// What tells that two calls are one intended call; equal to the one in `_meta` where there is one.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// W3C trace context.
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// W3C trace state.
pub(crate) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// W3C baggage.
pub(crate) static BAGGAGE: HeaderName = HeaderName::from_static("baggage");
/// Begins the name of a header that mirrors an argument (2026-07-28).
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// Returns a header that may be there once, as text.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn single(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> Result<Option<&str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("is there twice");
    }
    let text = first.to_str().map(Some);
    text.map_err(|_| "has characters no header may have")
}

/// Returns `true` if the content type is this one, whatever its parameters, and stated once.
pub(crate) fn is_of(headers: &HeaderMap, media: &str) -> bool {
    let value = single(headers, CONTENT_TYPE).unwrap_or_default();
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media))
}

/// Writes a text as a header value: as it is, or base64 in `=?base64?…?=` where it could not
/// otherwise travel (not ASCII, control characters, spaces at an end) or would look like that form.
pub(crate) fn encode_value(text: &str) -> String {
    let edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = text.as_bytes();
    let printable = bytes.iter().all(|byte| (0x20..=0x7e).contains(byte));
    let padded = edge(bytes.first()) || edge(bytes.last());
    let ambiguous = text.starts_with(OPEN) && text.ends_with(CLOSE);
    if printable && !padded && !ambiguous {
        text.to_owned()
    } else {
        format!("{OPEN}{}{CLOSE}", BASE64_STANDARD.encode(text))
    }
}

/// Reads a header value back; nothing if the base64 form holds no UTF-8 text.
pub(crate) fn decode_value(value: &str) -> Option<String> {
    let inner = value
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE));
    match inner {
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_content_type_is_compared_whole_and_without_parameters() {
        for (content_type, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json ;charset=utf-8", true),
            ("application/json-evil", false),
            ("application/jsonl", false),
            ("text/html", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())]);
            let is_json = is_of(&headers, "application/json");
            assert_eq!(is_json, expected, "{content_type}");
        }
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append(CONTENT_TYPE, "application/json".parse().unwrap());
        }
        assert!(!is_of(&twice, "application/json"));
    }

    proptest! {
        #[test]
        fn every_text_comes_back_and_is_a_legal_value(text in any::<String>()) {
            let value = encode_value(&text);
            prop_assert!(http::HeaderValue::from_str(&value).is_ok());
            prop_assert_eq!(decode_value(&value), Some(text));
        }
    }
}
