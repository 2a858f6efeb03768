//! One call of an operator and its outcome.

use std::sync::Arc;

use bytes::Bytes;
use callward::core::HedgeStatus;
use callward::{CallRecord, Caller, ErrorKind, ServerId, ToolError, Trail};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::runtime::Runtime;
use crate::view;

/// One call and its outcome.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    facts: Value,
    /// The raw result, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

/// Makes a call and describes its outcome.
///
/// # Errors
///
/// [`ToolError`] if the tool does not exist. The outcome describes a call that fails.
pub(super) async fn make(
    runtime: &Runtime,
    caller: Arc<Caller>,
    tool: &str,
    arguments: Bytes,
    pin: Option<ServerId>,
) -> Result<Outcome, ToolError> {
    let stack = &runtime.stack;
    let record = Arc::new(CallRecord::new());
    let mut call = stack
        .prepare(tool, arguments)
        // no call was made, so no layer saw it
        .inspect_err(|error| stack.note_refused(tool, &caller, None, error))?
        .with_record(record.clone())
        .with_caller(caller.clone());
    if let Some(pin) = pin {
        call = call.pinned_to(pin);
    }
    let effect = call.plan().effect;
    let (called, applied) = (call.tool().clone(), call.applied());
    let started = Instant::now();
    let answer = runtime.recorder.run(stack, tool, call).await;
    let took = started.elapsed();
    let facts = record.facts();
    let trail = Trail::observed(&called, applied, &facts, Some(&answer));
    let (result, error) = match answer {
        Ok(output) => (serde_json::from_slice(output.body()).ok(), None),
        Err(error) => (None, Some(described(&error, &caller))),
    };
    let facts = json!({
        "tool": tool,
        "effect": effect,
        // the one that was chosen last; none for an answer from the cache
        "server": facts.server.map(|(server, _)| server),
        "cache": facts.cache,
        // why the cache sent it without a look-up
        "cache_reason": facts.cache_bypass,
        // how many were started, a second one beside a slow first included
        "attempts": facts.started_attempts,
        // a second attempt beside a slow first one: `sent` or `won`
        "hedge": (facts.hedge != HedgeStatus::None).then_some(facts.hedge),
        // whether the loop guard answered in the server's place
        "guarded": facts.is_guarded,
        "took_us": u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        // everything that was decided about it, in order
        "trail": trail,
        "error": error,
    });
    Ok(Outcome { facts, result })
}

/// Describes why a call failed. The caller is an operator, who may know which rule hides a tool.
fn described(error: &ToolError, caller: &Caller) -> Value {
    let mut view = view::error(error);
    if let (ErrorKind::UnknownTool, Some(by)) = (error.kind, &error.authorization) {
        let roles: Vec<_> = caller.credential.roles.iter().map(String::as_str).collect();
        view["advice"] = format!(
            "rule `{}` hides it from the principal `{}` with the role `{}`, who makes this call; a \
             rule of `[[authorize]]` for either allows it",
            by.rule,
            caller.principal,
            roles.join("` and `")
        )
        .into();
    }
    view
}
