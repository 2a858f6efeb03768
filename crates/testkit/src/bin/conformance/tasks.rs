//! Calls that go on as tasks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, CreateTaskResult, JsonObject};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;
use tokio::time::sleep;

use crate::rounds::filled;
use crate::script::{Entry, Script, parse};

/// How long a call takes: as its argument `seconds` says, else as its entry does.
pub(crate) fn delay(entry: &Entry, values: &JsonObject) -> Duration {
    let seconds = values.get("seconds").and_then(Value::as_f64);
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.unwrap_or_else(|| Duration::from_millis(entry.delay_ms))
}

/// Starts the task of a call whose rounds are over.
pub(crate) fn start(
    tasks: &TaskManager,
    script: &Arc<Script>,
    entry: &Entry,
    values: JsonObject,
) -> CreateTaskResult {
    let (script, entry) = (Arc::clone(script), entry.clone());
    let task = tasks.spawn(TaskOptions::default(), |context| {
        Box::pin(async move {
            tokio::select! {
                () = context.cancelled() => Err(TaskExit::Cancelled),
                result = run(&context, &script, &entry, &values) => result,
            }
        })
    });
    CreateTaskResult::new(task)
}

async fn run(
    context: &TaskContext,
    script: &Script,
    entry: &Entry,
    values: &JsonObject,
) -> Result<CallToolResult, TaskExit> {
    let failed = |error: ErrorData| TaskExit::Error(error);
    sleep(delay(entry, values)).await;
    let asked = filled(script, &entry.inputs, values).map(|(key, request)| async {
        let request = parse(request).map_err(failed)?;
        context.request_input(key, request).await
    });
    try_join_all(asked).await?;
    script.answer(entry, values).map_err(failed)
}
