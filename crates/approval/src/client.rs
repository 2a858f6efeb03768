//! Asks the person at the client for a decision: `elicitation/create`, a form with one boolean.
//!
//! How it looks, and whether a person sees it at all, is the client's own business: some accept by
//! themselves. So it counts only where the operator says so.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::redact::Redactor;
use callward_core::{
    CallClient, ClientMethod, ToolCall, ToolError, is_invisible, one_line, written_out,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::step::Step;
use crate::{ApprovalError, Approvals, Asked, Request, sweep};

/// How much of a name or a reason is shown, in characters.
const MAX_CHARS: usize = 500;

/// Returns the client of a call, if it can ask a person.
pub(crate) fn of(call: &ToolCall) -> Option<&CallClient> {
    let can_ask = call.capabilities.allow(ClientMethod::Elicit, b"{}");
    call.client.as_ref().filter(|_| can_ask)
}

/// Asks about a pending request until it is decided, here or elsewhere, or expires. A client that
/// gives no decision takes it back.
pub(crate) async fn ask(
    approvals: &Approvals,
    client: &CallClient,
    request: &Request,
) -> Result<Arc<Request>, ToolError> {
    let (id, expires) = (&request.id, Instant::now() + sweep::left(request));
    approvals.note_shown(request, &request.asked.principal);
    let decided = approvals.wait(id, expires);
    let approves = tokio::select! {
        biased;
        decided = decided => return Ok(decided?),
        // not as a server asks: the call may be cached and repeated as any other
        answer = client.peer().ask(ClientMethod::Elicit, form(&request.asked)) => {
            answer.ok().and_then(|answer| read(&answer))
        }
    };
    let step = match approves {
        Some(approves) => Step::Answer { approves },
        None => Step::Withdraw(request.asked.principal.clone()),
    };
    match approvals.step(id, step).await {
        Err(ApprovalError::Ended { .. }) => Ok(approvals.get(id).await?),
        stepped => Ok(stepped?),
    }
}

/// Writes the question: what would run, with what, and why it is asked.
fn form(asked: &Asked) -> Bytes {
    let redactor = Redactor::new(
        Redactor::DEFAULT_NAMES.split_whitespace(),
        Asked::MAX_ARGUMENT_BYTES,
    );
    let arguments = redactor.redact(asked.arguments.as_bytes());
    let shown = |text: &str| one_line(text, MAX_CHARS);
    let hidden = match *arguments == *asked.arguments {
        true => "",
        false => "\nWhat is named like a secret, or looks like one, runs but is not shown.",
    };
    let message = format!(
        "Callward asks whether this call may run.\nTool: {} of {} ({})\nArguments: {}{hidden}\n\
         Reason: {}",
        shown(asked.tool.as_str()),
        asked.set,
        asked.effect,
        written_out(&arguments, is_invisible),
        shown(&asked.reason),
    );
    let approve = json!({
        "type": "boolean",
        "title": "Approve",
        "description": "Run the call once, with these arguments",
        "default": false,
    });
    let schema = json!({
        "type": "object", "properties": {"approve": approve}, "required": ["approve"],
    });
    let params = json!({"message": message, "requestedSchema": schema});
    params.to_string().into()
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    #[serde(other)]
    Cancel,
}

#[derive(Deserialize)]
struct Answer<'a> {
    action: Action,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content {
    approve: Option<bool>,
}

/// Reads an object: in an array, members would count by their places.
fn object<'a, T: Deserialize<'a>>(raw: &'a str) -> Option<T> {
    let is_object = raw.trim_start().starts_with('{');
    serde_json::from_str(raw).ok().filter(|_| is_object)
}

/// Returns the decision of an answer, if it is one. A form that is accepted without the boolean is
/// none: some clients accept every form as it is.
fn read(answer: &[u8]) -> Option<bool> {
    let answer: Answer<'_> = object(std::str::from_utf8(answer).ok()?)?;
    match answer.action {
        Action::Accept => object::<Content>(answer.content?.get())?.approve,
        Action::Decline => Some(false),
        Action::Cancel => None,
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::tool;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_the_boolean_and_a_refusal_decide() {
        for (answer, decision) in [
            (
                r#"{"action":"accept","content":{"approve":true}}"#,
                Some(true),
            ),
            (
                r#"{"action":"accept","content":{"approve":false}}"#,
                Some(false),
            ),
            (r#"{"action":"accept","content":{"approve":"true"}}"#, None),
            (r#"{"action":"accept","content":{}}"#, None),
            (r#"{"action":"accept"}"#, None),
            (
                r#"{"action":"decline","content":{"approve":true}}"#,
                Some(false),
            ),
            (r#"{"action":"cancel","content":{"approve":true}}"#, None),
            (r#"{"action":"yes","content":{"approve":true}}"#, None),
            (
                r#"{"action":"accept","content":{"approve":true,"approve":false}}"#,
                None,
            ),
            (r#"{"action":"accept","content":[true]}"#, None),
            (r#"["accept",{"approve":true}]"#, None),
            ("[true]", None),
            ("true", None),
        ] {
            assert_eq!(read(answer.as_bytes()), decision, "{answer}");
        }
    }

    #[test]
    fn a_person_sees_the_call_without_secrets_and_what_is_invisible() {
        let hidden = [
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{feff}",
            "\u{3164}",
            "\u{e0001}",
        ];
        let arguments = json!({"order_id": 7, "password": "hunter2", "x": hidden.concat()});
        let call = ToolCall::new(tool("wipe").destructive().build(), arguments.to_string());
        let asked = Asked::of(&call, "the call is destructive\u{1b}[2J:\n a rule").unwrap();
        let form: Value = serde_json::from_slice(&form(&asked)).unwrap();
        let message = form["message"].as_str().unwrap();
        assert!(message.contains("wipe of test (destructive)"), "{message}");
        assert!(
            message.contains(r#""order_id":7,"password":"[redacted]""#),
            "{message}"
        );
        let escaped = hidden
            .map(|text| text.escape_default().to_string())
            .concat();
        assert!(
            message.contains(&format!("\"x\":\"{escaped}\"")),
            "{message}"
        );
        let is_shown = |c: char| c == '\n' || !is_invisible(c);
        assert!(message.chars().all(is_shown), "{message}");
        assert_eq!(message.lines().count(), 5, "{message}");
        assert!(message.contains("runs but is not shown"), "{message}");
        assert_eq!(form["requestedSchema"]["required"][0], "approve");
    }
}
