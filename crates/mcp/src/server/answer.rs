//! Outgoing messages: each in up to three pieces, so that large results are not copied.

use std::time::Duration;

use bytes::Bytes;
use callward_core::{Delivery, ErrorKind, Method, OutputStatus, ToolError, ToolOutput};
use http::StatusCode;
use memchr::memmem;

use super::error::{self, Fault};
use crate::wire::{Era, RequestId, RpcError, code, flatten, object, write};

/// Results up to this size are copied into one buffer; larger ones are passed on by pointer.
const COPY_LIMIT: usize = 16 * 1024;

/// One outgoing message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    head: Bytes,
    body: Bytes,
    tail: &'static [u8],
    /// The status HTTP gives the message.
    pub(super) status: StatusCode,
    /// The scopes to ask for, of a call that was refused for lack of one.
    pub(super) scopes: Vec<&'static str>,
    /// When the client may try again, of one that was refused by a limit of ours.
    pub(super) retry_after: Option<Duration>,
}

impl Answer {
    /// Answers a request with a raw result.
    pub(super) fn result(id: &RequestId, result: &Bytes) -> Self {
        Self::wrap(id, b"", result)
    }

    /// Answers a request with its output. A modern result gets the members that it lacks: its type,
    /// and of some methods how long clients may keep it, which is not at all.
    pub(super) fn output(id: &RequestId, era: Era, method: Method, output: &ToolOutput) -> Self {
        let body = output.body();
        let lacks_type = era == Era::Modern && output.status() == OutputStatus::Complete;
        let open = body.iter().position(|byte| *byte == b'{');
        match open {
            Some(open) if lacks_type => {
                let mut members = b"{\"resultType\":\"complete\"".to_vec();
                if method.has_hints() {
                    for (name, value) in [("ttlMs", "0"), ("cacheScope", "\"private\"")] {
                        if lacks(body, name) {
                            write::member(&mut members, name, value.as_bytes());
                        }
                    }
                }
                let rest = body.slice(open + 1..);
                if rest.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'}') {
                    members.push(b',');
                }
                Self::wrap(id, &members, &rest)
            }
            _ => Self::result(id, body),
        }
    }

    /// Answers with an error.
    pub(super) fn error(id: Option<&RequestId>, error: &RpcError) -> Self {
        write::error(id, error).into()
    }

    /// Refuses a request.
    pub(super) fn refusal(fault: &Fault) -> Self {
        Self::error(fault.id.as_ref(), &fault.error)
    }

    /// Sends the client a notification.
    pub(super) fn notification(method: &str, params: Option<&[u8]>) -> Self {
        write::notification(method, params).into()
    }

    /// Returns the pieces, in order; some may be empty.
    pub(super) fn into_pieces(self) -> [Bytes; 3] {
        [self.head, self.body, Bytes::from_static(self.tail)]
    }

    /// Returns the pieces without raw line breaks, for a transport that frames by lines. In JSON
    /// these are white space between tokens.
    pub(super) fn into_lines(self) -> [Bytes; 3] {
        self.into_pieces().map(one_line)
    }

    fn wrap(id: &RequestId, before: &[u8], body: &Bytes) -> Self {
        let is_copied = body.len() <= COPY_LIMIT;
        let id = id.to_raw();
        let copied = if is_copied { body.len() } else { 0 };
        let mut head = Vec::with_capacity(40 + id.len() + before.len() + copied);
        head.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        head.extend_from_slice(id.as_bytes());
        head.extend_from_slice(b",\"result\":");
        head.extend_from_slice(before);
        if is_copied {
            head.extend_from_slice(body);
            head.push(b'}');
            return head.into();
        }
        Self {
            head: head.into(),
            body: body.clone(),
            tail: b"}",
            ..Self::default()
        }
    }
}

impl From<Vec<u8>> for Answer {
    fn from(message: Vec<u8>) -> Self {
        Self {
            head: message.into(),
            ..Self::default()
        }
    }
}

/// Returns what a client of this era gets to see of a finished call.
pub(super) fn of_call(
    id: &RequestId,
    era: Era,
    (method, name): (Method, &str),
    outcome: Result<ToolOutput, ToolError>,
) -> Answer {
    let error = match outcome {
        Ok(output) if era == Era::Modern || output.status() == OutputStatus::Complete => {
            return Answer::output(id, era, method, &output);
        }
        Ok(_) => {
            let text = format!(
                "{name} wants input before it goes on, which needs a client of protocol revision \
                 2026-07-28 or later"
            );
            ToolError::new(ErrorKind::Protocol, Delivery::Answered, text)
        }
        Err(error) => error,
    };
    let seen = error::of_call(&error, era);
    let mut answer = Answer::error(Some(id), &seen);
    if !error.scopes.is_empty() {
        answer.status = StatusCode::FORBIDDEN;
        answer.scopes.clone_from(&error.scopes);
    }
    answer.retry_after = error.limit.as_ref().and(error.retry_after);
    if answer.retry_after.is_some() {
        answer.status = StatusCode::TOO_MANY_REQUESTS;
    }
    if era == Era::Modern && seen.code == code::MISSING_CLIENT_CAPABILITY {
        answer.status = StatusCode::BAD_REQUEST;
    }
    answer
}

/// Returns `true` if an object has no member of this name. It is read only if it has the word, or
/// may spell it with escapes.
fn lacks(body: &[u8], name: &str) -> bool {
    let may_have =
        memmem::find(body, name.as_bytes()).is_some() || memmem::find(body, b"\\u00").is_some();
    !may_have || object::get_member(body, name).is_ok_and(|member| member.is_none())
}

fn one_line(piece: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &piece).is_none() {
        return piece;
    }
    let mut piece = Vec::from(piece);
    flatten(&mut piece);
    piece.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: Answer) -> String {
        let pieces = answer.into_pieces();
        String::from_utf8(pieces.concat()).unwrap()
    }

    fn answered(era: Era, raw: &str) -> String {
        let output = ToolOutput::from_json(raw.to_owned()).unwrap();
        let id = RequestId::from_raw(r#""a""#).unwrap();
        text(Answer::output(&id, era, Method::CallTool, &output))
    }

    #[test]
    fn a_modern_result_gets_the_member_it_lacks_and_nothing_else_changes() {
        let structured = r#"{"resultType":"complete","structuredContent":{"resultType":"x"}}"#;
        for (raw, result) in [
            (r#"{"n" : 1e2}"#, r#"{"resultType":"complete","n" : 1e2}"#),
            ("{}", r#"{"resultType":"complete"}"#),
            (" { } ", r#"{"resultType":"complete" } "#),
            (r#"{"structuredContent":{"resultType":"x"}}"#, structured),
            (r#"{"resultType":"complete","x":1}"#, ""),
            (r#"{"resultType":"input_required","requestState":"s"}"#, ""),
        ] {
            let result = if result.is_empty() { raw } else { result };
            let expected = format!(r#"{{"jsonrpc":"2.0","id":"a","result":{result}}}"#);
            assert_eq!(answered(Era::Modern, raw), expected, "{raw}");
        }
    }

    #[test]
    fn a_modern_read_says_how_long_it_may_be_kept() {
        for (raw, result) in [
            (
                "{}",
                r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
            ),
            (
                r#"{"x":"ttlMs","cacheScope":"public"}"#,
                r#"{"resultType":"complete","ttlMs":0,"x":"ttlMs","cacheScope":"public"}"#,
            ),
        ] {
            let output = ToolOutput::from_json(raw).unwrap();
            let method = Method::ReadResource;
            let answer = Answer::output(&RequestId::number(1), Era::Modern, method, &output);
            let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            assert_eq!(text(answer), expected);
        }
    }

    #[test]
    fn a_legacy_client_sees_no_result_type() {
        let answered = answered(Era::Legacy, r#"{"resultType":"complete","n" : 1e2}"#);
        assert_eq!(
            answered,
            r#"{"jsonrpc":"2.0","id":"a","result":{"n" : 1e2}}"#
        );
    }

    #[test]
    fn a_large_result_is_passed_on_by_pointer() {
        let raw = format!(r#"{{"content":[],"x":"{}"}}"#, "y".repeat(COPY_LIMIT));
        let output = ToolOutput::from_json(raw).unwrap();
        let answer = Answer::output(
            &RequestId::number(1),
            Era::Modern,
            Method::CallTool,
            &output,
        );
        assert_eq!(answer.body.as_ptr(), output.body()[1..].as_ptr());
        let value: serde_json::Value = serde_json::from_str(&text(answer)).unwrap();
        assert_eq!(value["result"]["resultType"], "complete");
    }
}
