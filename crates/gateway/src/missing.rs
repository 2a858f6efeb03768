//! Required arguments that a call lacks: the person at the client is asked for them by a form.

use bytes::Bytes;
use callward::approval::questions::{Answer, Question, QuestionError};
use callward::core::redact::Redactor;
use callward::core::{Members, one_line};
use callward::{Delivery, ErrorKind, ToolCall, ToolError};
use callward_mcp::wire::object;
use serde_json::{Map, Value, json};

use crate::runtime::Runtime;

/// The most characters of a title or a description of a server.
const MAX_TEXT: usize = 300;

/// Asks for what the call lacks, and returns the whole arguments; `None` if it lacks nothing, or
/// nothing that this client can be asked for.
///
/// # Errors
///
/// [`ErrorKind::InvalidCall`] if the person gives no answer.
pub(crate) async fn whole(
    runtime: &Runtime,
    call: &ToolCall,
    name: &str,
) -> Result<Option<Bytes>, ToolError> {
    let Some(form) = form(call, &runtime.redactor) else {
        return Ok(None);
    };
    let message = format!("The tool `{}` needs more to run.", one_line(name, MAX_TEXT));
    let question = Question::form(message, form);
    let refused = |why: String| {
        let text = format!("the call lacks required arguments: {why}");
        ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
    };
    match runtime.questions.to(call).ask(question).await {
        Ok(Answer::Value(Value::Object(given))) => {
            let arguments = Bytes::copy_from_slice(call.arguments());
            let whole = given.iter().try_fold(arguments, |whole, (name, value)| {
                object::set_member(&whole, name, value.to_string().as_bytes())
            });
            whole.map(Some).map_err(|error| refused(error.to_string()))
        }
        Err(
            error @ (QuestionError::Declined
            | QuestionError::Cancelled
            | QuestionError::TimedOut(_)
            | QuestionError::Unfit(_)),
        ) => Err(refused(error.to_string())),
        _ => Ok(None),
    }
}

/// Returns the form for the required members that the arguments lack; `None` if there are none, or
/// if one of them may be a secret.
fn form(call: &ToolCall, redactor: &Redactor) -> Option<Value> {
    let schema = call.tool().definition.input_schema.as_ref()?;
    let schema: Value = serde_json::from_str(schema.get()).ok()?;
    let given = std::str::from_utf8(call.arguments()).ok()?;
    let given = Members::read(given).ok()?;
    let required = schema.get("required")?.as_array()?.iter();
    let required = required.filter_map(Value::as_str);
    let missing: Vec<_> = required.filter(|name| given.last(name).is_none()).collect();
    let mut members = Map::new();
    for name in &missing {
        let mut member = schema.get("properties")?.get(name)?.as_object()?.clone();
        let mut is_secret = redactor.hides(name);
        is_secret |= member.get("format").is_some_and(|it| it == "password");
        // annotations that forms do not have
        member.retain(|key, _| !["examples", "format", "uniqueItems"].contains(&key.as_str()));
        for key in ["title", "description"] {
            if let Some(Value::String(text)) = member.get_mut(key) {
                is_secret |= redactor.hides(text);
                *text = one_line(text, MAX_TEXT);
            }
        }
        if is_secret {
            return None;
        }
        members.insert((*name).to_owned(), member.into());
    }
    let form = json!({"type": "object", "properties": members, "required": missing});
    (!missing.is_empty()).then_some(form)
}
