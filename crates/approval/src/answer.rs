//! What a caller gets in its tool's place. Never how to approve: a model would try.

use callward_core::{ToolOutput, one_line};
use serde_json::json;

use crate::clock::{millis, shown};
use crate::{ApprovalConfig, Request, State};

/// The key in the `_meta` of such an answer: an object with `state`, `request`, `expires`,
/// `ask_again` and `note`; a denial expires with its cool-off. It is no `structuredContent`, which
/// clients check by the tool's schema.
pub const APPROVAL_META: &str = "io.callward/approval";

/// How much of a reviewer's note a model gets.
const MAX_NOTE_CHARS: usize = 1_000;

/// Returns the answer for a request, in this state, that lets no call run.
pub(crate) fn of(request: &Request, state: State, config: &ApprovalConfig) -> ToolOutput {
    let id = &request.id;
    let expires = shown(match state {
        State::Denied => request.since_ms.saturating_add(millis(config.cool_off)),
        _ => request.expires_ms,
    });
    let note = request
        .decision
        .as_ref()
        .and_then(|decision| decision.note.as_deref());
    let note = note.map(|note| one_line(note, MAX_NOTE_CHARS));
    let (state, ask_again, what) = match state {
        State::Pending | State::Approved => (
            "waiting",
            true,
            "waits for a person's decision. Ask again, with the same arguments: the request stays \
             open for a while. Other arguments are another request.",
        ),
        State::Denied => (
            "denied",
            false,
            "is denied by a person. Do not send this call again; change course, or ask the user \
             how to go on.",
        ),
        State::Expired => (
            "expired",
            true,
            "was not decided about in time, which is not a denial. Ask again if it is still needed.",
        ),
        State::Withdrawn => (
            "withdrawn",
            true,
            "was not decided about: the request was taken back, or the person at the client gave no \
             decision. Ask again only if it is still needed.",
        ),
        State::Consumed | State::Succeeded | State::Failed | State::Unknown => (
            "used",
            true,
            "was run by an equal call, which used the approval. Ask again if it is to run once \
             more.",
        ),
    };
    let mut text = format!("Not sent: `{}` {what}", request.asked.tool);
    if let Some(note) = &note {
        text = format!("{text} The reviewer's note: {note}");
    }
    let approval = json!({
        "state": state, "request": id, "expires": expires, "ask_again": ask_again, "note": note,
    });
    let body = json!({
        "content": [{"type": "text", "text": text}],
        "_meta": {APPROVAL_META: approval},
        "isError": true,
    });
    let written = ToolOutput::from_json(body.to_string());
    written.unwrap_or_else(|_| ToolOutput::error_text(text))
}
