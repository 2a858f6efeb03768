//! Required arguments that a call lacks: the person at the client is asked for them by a form,
//! and for secrets by a page.

use std::collections::BTreeMap;

use bytes::Bytes;
use callward::approval::questions::{Answer, Question, QuestionError};
use callward::core::{CredentialKind, Members, one_line};
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
    let refused = |why: String| {
        let text = format!("the call lacks required arguments: {why}");
        ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
    };
    let questions = questions(runtime, call, &one_line(name, MAX_TEXT)).unwrap_or_default();
    let mut whole = None;
    for (name, question) in questions {
        let given = match runtime.questions.to(call).ask(question).await {
            Ok(Answer::Value(Value::Object(given))) => given,
            Ok(Answer::Secret(secret)) => Map::from_iter([(name, secret.expose().into())]),
            Err(
                error @ (QuestionError::Declined
                | QuestionError::Cancelled
                | QuestionError::TimedOut(_)
                | QuestionError::Unfit(_)),
            ) => return Err(refused(error.to_string())),
            _ => return Ok(None),
        };
        for (name, value) in given {
            let arguments = whole.as_deref().unwrap_or_else(|| call.arguments());
            let added = object::set_member(arguments, &name, value.to_string().as_bytes());
            whole = Some(added.map_err(|error| refused(error.to_string()))?);
        }
    }
    Ok(whole)
}

/// Returns what to ask for the required members that the arguments lack, in this order: a form
/// under no name, and each secret under its own. `None` if one of them cannot be asked for.
fn questions(runtime: &Runtime, call: &ToolCall, tool: &str) -> Option<BTreeMap<String, Question>> {
    // who is known by another credential has no key to type at the page
    let kind = call.caller().credential.kind;
    let has_key = ![CredentialKind::Certificate, CredentialKind::Proxy].contains(&kind);
    let has_page = has_key && runtime.questions.to(call).has_page();
    let schema = call.tool().definition.input_schema.as_ref()?;
    let schema: Value = serde_json::from_str(schema.get()).ok()?;
    let given = std::str::from_utf8(call.arguments()).ok()?;
    let given = Members::read(given).ok()?;
    let required = schema.get("required")?.as_array()?.iter();
    let required = required.filter_map(Value::as_str);
    let (mut members, mut questions) = (Map::new(), BTreeMap::new());
    for name in required.filter(|name| given.last(name).is_none()) {
        let mut member = schema.get("properties")?.get(name)?.as_object()?.clone();
        let is_hidden = runtime.redactor.hides(name);
        let mut is_secret = is_hidden || member.get("format").is_some_and(|it| it == "password");
        // annotations that forms do not have
        member.retain(|key, _| !["examples", "format", "uniqueItems"].contains(&key.as_str()));
        for key in ["title", "description"] {
            if let Some(Value::String(text)) = member.get_mut(key) {
                is_secret |= runtime.redactor.hides(text);
                *text = one_line(text, MAX_TEXT);
            }
        }
        if !is_secret {
            members.insert(name.to_owned(), member.into());
            continue;
        }
        // one that is not hidden by its name would be in logs
        if !is_hidden || member.get("type")? != "string" || !has_page {
            return None;
        }
        let about = member.get("description").and_then(Value::as_str);
        let (shown, about) = (one_line(name, MAX_TEXT), about.unwrap_or_default());
        let question = format!("The tool `{tool}` needs `{shown}` to run. {about}");
        let question = question.trim_end();
        let with = |question: Question, (key, value): (String, _)| question.with(&key, value);
        let question = member.into_iter().fold(Question::secret(question), with);
        questions.insert(name.to_owned(), question);
    }
    if !members.is_empty() {
        let required: Vec<_> = members.keys().collect();
        let form = json!({"type": "object", "required": required, "properties": members});
        let form = Question::form(format!("The tool `{tool}` needs more to run."), form);
        questions.insert(String::new(), form);
    }
    Some(questions)
}
