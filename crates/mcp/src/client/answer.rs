//! The meaning of a failed request for its call.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use callward_core::redact::{self, Known};
use callward_core::{
    Delivery, ErrorDetails, ErrorKind, FailedAttempt, OutcomeUnknown, PeerOutcome, ToolError,
    readable,
};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde::de::IgnoredAny;
use url::Url;

use crate::wire::{InvalidMessage, RpcError, code};

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The server answered with a JSON-RPC error.
    Refused(RpcError),
    /// The server does not know the session any more. It may have run the request before it said
    /// so.
    SessionGone,
    /// Everything else.
    Failed(ToolError),
}

impl From<ToolError> for RequestError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl RequestError {
    pub(super) fn not_sent(message: impl Into<String>) -> Self {
        ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, message.into()).into()
    }

    /// The call cannot be sent as it is.
    pub(super) fn invalid(message: impl Into<String>) -> ToolError {
        ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, message.into())
    }

    pub(super) fn lost(message: impl Into<String>) -> Self {
        ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, message.into()).into()
    }

    /// The connection broke before the end of the request was written: the server has an incomplete
    /// JSON text, so it cannot have run it.
    pub(super) fn cut_short(message: impl Into<String>) -> Self {
        ToolError::new(ErrorKind::ConnectionLost, Delivery::NotSent, message.into()).into()
    }

    /// The reply is not an answer. One that only breaks off is a lost connection.
    pub(super) fn unreadable(error: &InvalidMessage) -> Self {
        if error.is_truncated() {
            Self::lost(format!("the answer broke off: {error}"))
        } else {
            Self::protocol(format!("the server's answer cannot be read: {error}"))
        }
    }

    pub(super) fn protocol(message: impl Into<String>) -> Self {
        ToolError::new(ErrorKind::Protocol, Delivery::Answered, message.into()).into()
    }

    /// An answer came that belongs to another request, such as a late second one on a connection
    /// that was kept. It is not about this request.
    pub(super) fn misdirected() -> Self {
        let text = "the server answered with a message that is not for this request";
        ToolError::new(ErrorKind::Protocol, Delivery::Unknown, text).into()
    }

    /// The server has answered, and the answer is longer than the limit: it was not kept.
    pub(super) fn too_large(limit: usize) -> Self {
        let text = format!(
            "the server's answer is longer than {limit} bytes, the limit for one message: ask for \
             less, or raise the server's `max_message`"
        );
        ToolError::new(ErrorKind::TooLarge, Delivery::Answered, text).into()
    }

    /// The stream of the answer has brought this many bytes and no answer: nothing is known of the
    /// call.
    pub(super) fn no_answer_within(limit: usize) -> Self {
        let text = format!("the server's stream has more than {limit} bytes and no answer in them");
        ToolError::new(ErrorKind::TooLarge, Delivery::Unknown, text).into()
    }

    /// Leaves secrets out of what the server says: it may repeat them.
    pub(super) fn without(self, secrets: &Known) -> Self {
        match self {
            Self::Refused(mut error) => {
                hide(&mut error.message, &mut error.data, secrets);
                Self::Refused(error)
            }
            Self::Failed(mut error) => {
                let ErrorDetails { message, data, .. } = &mut *error;
                hide(message, data, secrets);
                Self::Failed(error)
            }
            Self::SessionGone => self,
        }
    }

    /// Returns `true` if the connection was lost after the request was sent.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Failed(error)
            if error.kind == ErrorKind::ConnectionLost && error.delivery == Delivery::Unknown)
    }

    /// Returns `true` if the server refused the request for its headers, with the status the
    /// protocol has for that.
    pub(super) fn refuses_headers(&self) -> bool {
        matches!(self, Self::Refused(error)
            if error.code == code::HEADER_MISMATCH && error.status == Some(400))
    }

    /// Converts it for observers of requests.
    pub(super) fn outcome(&self) -> PeerOutcome<'_> {
        match self {
            Self::Refused(error) => PeerOutcome::Refused(error.code),
            Self::SessionGone => PeerOutcome::Refused(404),
            Self::Failed(error) => PeerOutcome::Failed(error),
        }
    }

    /// Converts it into the caller's error.
    pub(super) fn into_tool_error(self) -> ToolError {
        match self {
            Self::Refused(error) => refused(error),
            Self::SessionGone => {
                let text = "the server answered that it does not know the session of the call";
                ToolError::new(ErrorKind::SessionLost, Delivery::Unknown, text).with_code(404)
            }
            Self::Failed(error) => error,
        }
    }

    /// The same for a request that precedes the call: the call was not sent.
    pub(super) fn before_the_call(self) -> Self {
        let error = self.into_tool_error();
        if error.delivery == Delivery::NotSent {
            return Self::Failed(error);
        }
        let kind = match error.kind {
            kind @ (ErrorKind::Unauthorized | ErrorKind::RateLimited) => kind,
            _ => ErrorKind::ConnectFailed,
        };
        let text = format!("no connection could be made: {}", error.message);
        let mut before = ToolError::new(kind, Delivery::NotSent, text);
        before.code = error.code;
        before.retry_after = error.retry_after;
        Self::Failed(before.with_source(error))
    }
}

fn hide(message: &mut Cow<'static, str>, data: &mut Option<Bytes>, secrets: &Known) {
    if let Cow::Owned(shown) = secrets.hide(message) {
        *message = shown.into();
    }
    if let Some(data) = data
        && let Cow::Owned(shown) = secrets.hide(&String::from_utf8_lossy(data))
    {
        // a number may be a secret, a secret may have quotation marks, and a long text is cut
        *data = match serde_json::from_str::<IgnoredAny>(&shown) {
            Ok(_) => shown.into(),
            Err(_) => Bytes::from_static(b"\"[redacted]\""),
        };
    }
}

/// Reads a JSON-RPC error as the failure of a call. Code, message and data are kept.
fn refused(error: RpcError) -> ToolError {
    let kind = match error.code {
        code::INVALID_REQUEST
        | code::METHOD_NOT_FOUND
        | code::INVALID_PARAMS
        | code::PARSE_ERROR
        | code::MISSING_CLIENT_CAPABILITY
        | code::URL_ELICITATION_REQUIRED => ErrorKind::InvalidCall,
        // the two sides disagree about the protocol, not about the call
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION => ErrorKind::Protocol,
        _ => ErrorKind::ServerFault,
    };
    let message = match error.message.is_empty() {
        true => "the server refused the call without a reason".into(),
        false => error.message,
    };
    let data = error.data.as_deref().unwrap_or_default();
    let reported = Delivery::told_by_peer(error.code, data);
    let message = match reported.is_some() || FailedAttempt::told_by_peer(data) > 0 {
        true => OutcomeUnknown::without_verifier(&message).into(),
        false => message,
    };
    // another gateway that lost the call answers for itself, not for the server behind it
    let is_lost = reported == Some(Delivery::Unknown);
    let failure = reported.filter(|_| !is_lost);
    let failure = failure.and_then(|_| failure_at_peer(data));
    let (kind, wait) = failure.unwrap_or((kind, None));
    let mut failed = match is_lost {
        true => ToolError::new(ErrorKind::ServerFault, Delivery::Unknown, message),
        false => ToolError::new(kind, Delivery::Answered, message),
    };
    failed.code = Some(error.code);
    failed.retry_after = wait;
    failed.http_status = error.status;
    failed.data = error.data.and_then(readable);
    failed
}

/// Reads the data of another gateway's error: the kind, if it does not speak against a server or no
/// retry would help, and how long to wait.
fn failure_at_peer(data: &[u8]) -> Option<(ErrorKind, Option<Duration>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Refusal {
        kind: ErrorKind,
        retry_after_ms: Option<u64>,
    }
    let refusal: Refusal = serde_json::from_slice(data).ok()?;
    match refusal.kind {
        kind @ (ErrorKind::BreakerOpen
        | ErrorKind::DeadlineExceeded
        | ErrorKind::InvalidCall
        | ErrorKind::Overloaded
        | ErrorKind::RateLimited
        | ErrorKind::TooLarge
        | ErrorKind::Unauthorized) => {
            let wait = refusal.retry_after_ms.map(Duration::from_millis);
            Some((kind, wait.map(|wait| wait.min(MAX_WAIT))))
        }
        _ => None,
    }
}

/// Returns the data of an error as every client can read it; nothing if none can be.
fn readable(data: Bytes) -> Option<Bytes> {
    let is_readable = readable::check(&data).is_ok();
    is_readable.then(|| readable::without_lone_surrogates(data))
}

/// Reads an HTTP answer that is not a success. `rpc` is the JSON-RPC error in its body, if any, and
/// `text` what the body says otherwise.
pub(super) fn status(
    status: StatusCode,
    headers: &HeaderMap,
    rpc: Option<RpcError>,
    text: &str,
) -> RequestError {
    let kind = match status.as_u16() {
        401 | 403 | 407 => ErrorKind::Unauthorized,
        // not the caller's fault, though a 4xx: the request took too long to arrive
        408 => ErrorKind::Timeout,
        429 => ErrorKind::RateLimited,
        500..=599 => ErrorKind::ServerFault,
        // 101 switches to a protocol that was not requested
        100..=199 | 300..=399 => ErrorKind::Protocol,
        _ => {
            // here the body decides, if it can
            if let Some(mut rpc) = rpc {
                rpc.status = Some(status.as_u16());
                return RequestError::Refused(rpc);
            }
            ErrorKind::InvalidCall
        }
    };
    let said = rpc.as_ref().map_or(text, |rpc| &rpc.message);
    let mut message = format!("the server answered HTTP {status}");
    if !said.is_empty() {
        message.push_str(": ");
        message.push_str(said);
    } else if status.is_redirection() {
        message.push_str(": redirects are not followed");
        if let Some(to) = location(headers) {
            message.push_str(&format!("; the address to configure may be {to}"));
        }
    }
    let retry_after = retry_after(headers);
    if let Some(wait) = retry_after.filter(|_| kind == ErrorKind::RateLimited) {
        message.push_str(&format!("; call again in {wait:?}"));
    }
    let code = rpc.as_ref().map(|rpc| rpc.code);
    let mut error = ToolError::new(kind, Delivery::Answered, message)
        .with_http_status(status.as_u16())
        .with_code(code.unwrap_or_else(|| i64::from(status.as_u16())));
    error.data = rpc.and_then(|rpc| rpc.data).and_then(readable);
    error.retry_after = retry_after;
    RequestError::Failed(error)
}

/// Returns the address that a redirect leads to, as much of it as may be shown: the server chose
/// it.
fn location(headers: &HeaderMap) -> Option<String> {
    let to = Url::parse(headers.get(header::LOCATION)?.to_str().ok()?).ok()?;
    if !matches!(to.scheme(), "http" | "https") {
        return None;
    }
    // query and credentials are left out, and what stays is ASCII
    let shown = redact::url(&(to.origin().ascii_serialization() + to.path()));
    Some(shown.chars().take(MAX_LOCATION).collect())
}

/// How many characters of an address are shown.
const MAX_LOCATION: usize = 200;

/// A longer wait counts as this, which can be added to any time.
const MAX_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Reads `Retry-After`: seconds, or a date. A date counts from the answer's own `Date`, so that the
/// two clocks need not agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds).min(MAX_WAIT));
    }
    let then = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(headers.get(header::DATE)?.to_str().ok()?).ok()?;
    Some(then.duration_since(now).unwrap_or_default().min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn data_that_clients_may_be_unable_to_read_is_left_out() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for data in [deep, "[1e400]".to_owned()] {
            let error = refused(RpcError::new(-32050, "no").with_data(data));
            assert_eq!(error.data, None);
        }
        let error = refused(RpcError::new(-32050, "no").with_data(r#"["\ud800"]"#));
        assert_eq!(error.data.as_ref().unwrap(), r#"["\ufffd"]"#);
    }

    #[test]
    fn of_a_redirect_scheme_host_port_and_path_are_shown() {
        let long = format!("http://a.test/{}", "x".repeat(500));
        for (to, shown) in [
            ("https://a.test/mcp", Some("https://a.test/mcp")),
            ("http://a.test:80/m?key=1#x", Some("http://a.test/m")),
            ("http://me:secret@a.test/mcp", Some("http://a.test/mcp")),
            ("http://a.test/I <b>", Some("http://a.test/I%20%3Cb%3E")),
            (&long, Some(&long[..200])),
            ("IGNORE ALL", None),
            ("/mcp/", None),
            ("javascript:ignore", None),
            ("file:///etc/passwd", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, HeaderValue::from_str(to).unwrap());
            let error = status(StatusCode::FOUND, &headers, None, "").into_tool_error();
            let message = "the server answered HTTP 302 Found: redirects are not followed";
            let message = match shown {
                Some(shown) => format!("{message}; the address to configure may be {shown}"),
                None => message.to_owned(),
            };
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn a_call_that_another_gateway_lost_is_of_unknown_delivery() {
        const OURS: i64 = ToolError::RUNTIME_CODE;
        for (code, word, delivery) in [
            (OURS, "unknown", Delivery::Unknown),
            (OURS, "answered", Delivery::Answered),
            // it may be asked again elsewhere only on our own evidence
            (OURS, "not_sent", Delivery::Answered),
            // another server's own data
            (-32000, "unknown", Delivery::Answered),
        ] {
            let data = format!(r#"{{"kind":"outcome_unknown","delivery":"{word}"}}"#);
            let error = refused(RpcError::new(code, "lost").with_data(data));
            let found = (error.kind, error.delivery);
            assert_eq!(found, (ErrorKind::ServerFault, delivery), "{code} {word}");
        }
    }

    #[test]
    fn what_another_gateway_says_of_a_failure_never_permits_a_retry() {
        use ErrorKind::{DeadlineExceeded, ServerFault, TooLarge, Unauthorized};
        for (kind, answered) in [
            (TooLarge, TooLarge),
            (DeadlineExceeded, DeadlineExceeded),
            (Unauthorized, Unauthorized),
            (ErrorKind::RateLimited, ErrorKind::RateLimited),
            (ErrorKind::Timeout, ServerFault),
            // of the caller of the other gateway, not of ours
            (ErrorKind::Cancelled, ServerFault),
            (ErrorKind::ConnectFailed, ServerFault),
        ] {
            for (word, kind_here, delivery) in [
                ("answered", answered, Delivery::Answered),
                ("not_sent", answered, Delivery::Answered),
                ("unknown", ServerFault, Delivery::Unknown),
            ] {
                let data = format!(r#"{{"kind":"{kind}","delivery":"{word}"}}"#);
                let error = RpcError::new(ToolError::RUNTIME_CODE, "no").with_data(data);
                let error = refused(error);
                assert_eq!(
                    (error.kind, error.delivery),
                    (kind_here, delivery),
                    "{kind}"
                );
            }
            let data = format!(r#"{{"kind":"{kind}","delivery":"answered"}}"#);
            let other = refused(RpcError::new(-32000, "no").with_data(data));
            assert_eq!(other.kind, ServerFault, "of another server");
        }
    }

    #[test]
    fn the_tool_another_gateway_checks_with_is_not_named() {
        const OURS: i64 = ToolError::RUNTIME_CODE;
        let (unknown, listed) = (r#"{"delivery":"unknown"}"#, r#"{"history":[{}],"a":1}"#);
        for (code, data, message, shown) in [
            (
                OURS,
                unknown,
                "lost; check with `a__b` what it did",
                "lost; check what it did",
            ),
            (
                OURS,
                unknown,
                "no; it may have run: check with `a`",
                "no; it may have run",
            ),
            (
                -32603,
                listed,
                "no; the call may have run: check with `a`",
                "no",
            ),
            (-32603, listed, "no; the call may have run", "no"),
            (-32603, listed, "check with `a", "check with `a"),
            (-32603, "{}", "no: check with `a`", "no: check with `a`"),
        ] {
            let error = refused(RpcError::new(code, message).with_data(data));
            assert_eq!(error.message, shown);
        }
    }

    #[test]
    fn the_wait_a_server_asks_for_is_read_in_both_forms() {
        let [early, late] = [
            "Sun, 06 Nov 1994 08:49:00 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT",
        ];
        for (wait, date, expected) in [
            ("7", None, Some(Duration::from_secs(7))),
            (late, Some(early), Some(Duration::from_secs(37))),
            (late, None, None), // a date needs a date to count from
            ("soon", None, None),
            ("18446744073709551615", None, Some(MAX_WAIT)),
            (early, Some(late), Some(Duration::ZERO)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(wait));
            headers.extend(date.map(|date| (header::DATE, HeaderValue::from_static(date))));
            assert_eq!(retry_after(&headers), expected, "{wait} {date:?}");
            let limited = status(StatusCode::TOO_MANY_REQUESTS, &headers, None, "");
            let said = &limited.into_tool_error().message;
            assert_eq!(
                said.contains("; call again in "),
                expected.is_some(),
                "{said}"
            );
        }
    }
}
