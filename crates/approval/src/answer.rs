//! What a caller gets in its tool's place. Never how to approve: a model would try.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput, one_line};
use serde_json::json;

use crate::clock::{millis, shown};
use crate::{Request, State};

/// How much of a reviewer's note a model gets.
const MAX_NOTE_CHARS: usize = 1_000;

/// Returns the answer for a request that lets no call run.
pub(crate) fn of(request: &Request) -> Result<ToolOutput, ToolError> {
    let tool = request.asked.tool.as_str();
    let note = request
        .reviewed
        .as_ref()
        .and_then(|reviewed| reviewed.note.as_deref());
    let note = note.map(|note| one_line(note, MAX_NOTE_CHARS));
    let (state, text) = match request.state {
        State::Pending | State::Approved => (
            "waiting",
            format!(
                "Not sent yet: `{tool}` waits for a person's decision. Ask again, with the same \
                 arguments: the request stays open until {}. Other arguments are another request.",
                shown(request.expires_ms)
            ),
        ),
        State::Denied => (
            "denied",
            format!(
                "Not sent: a person denied this call of `{tool}`. Do not send it again; change \
                 course, or ask the user how to go on.{}",
                note.as_ref()
                    .map_or_else(String::new, |note| format!(" The reviewer's note: {note}"))
            ),
        ),
        State::Expired => (
            "expired",
            format!(
                "Not sent: no one decided about this call of `{tool}` in time. That is not a \
                 denial; if the call is still needed, ask again."
            ),
        ),
        State::Withdrawn => (
            "withdrawn",
            format!("Not sent: the request for this call of `{tool}` was taken back."),
        ),
        State::Consumed | State::Succeeded | State::Failed | State::Unknown => (
            "used",
            format!(
                "Not sent: the approval of `{tool}` with these arguments was used by an equal \
                 call. If the tool is to run once more, ask again."
            ),
        ),
    };
    let structured = json!({
        "state": state,
        "request": request.id,
        "expires": shown(request.expires_ms),
        "ask_again": !matches!(state, "denied" | "withdrawn"),
        "note": note,
    });
    let body = json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"approval": structured},
        "isError": true,
    });
    ToolOutput::from_json(body.to_string()).map_err(|error| {
        let text = "the answer about an approval cannot be written";
        ToolError::new(ErrorKind::Internal, Delivery::NotSent, text).with_source(error)
    })
}

/// Returns the error for arguments that no person can read.
pub(crate) fn too_large(bytes: usize, most: usize) -> ToolError {
    let text = format!(
        "the call needs approval, and its arguments have {bytes} bytes; at most {most} can be \
         approved"
    );
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
}

/// Returns the report for a caller that waits, under a token that the sink replaces.
pub(crate) fn progress(waited: Duration) -> Vec<u8> {
    let report = json!({
        "progressToken": 0,
        "progress": millis(waited) / 1000,
        "message": "waits for a person's decision",
    });
    report.to_string().into_bytes()
}
