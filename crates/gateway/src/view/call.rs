//! One call and its outcome.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::HedgeStatus;
use callward::{CallRecord, Caller, ServerId, Stack, ToolError, ToolOutput, Trail};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::millis;
use crate::record::Recorder;

/// One call and its outcome.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallView {
    pub(crate) tool: String,
    pub(crate) effect: String,
    /// The server that was chosen last; none for an answer from the cache.
    pub(crate) server: Option<String>,
    pub(crate) cache: String,
    /// Why the cache sent it without a look-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_reason: Option<String>,
    /// How many were started, a second one beside a slow first included.
    pub(crate) attempts: u32,
    /// A second attempt beside a slow first one: `sent` or `won`; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hedge: Option<String>,
    /// Whether the loop guard answered in the server's place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) guarded: bool,
    pub(crate) took_us: u64,
    /// Everything that was decided about it, in order.
    #[serde(default)]
    pub(crate) trail: Value,
    /// The raw result, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Value>,
}

/// Describes why a call failed.
pub(crate) fn error(error: &ToolError) -> Value {
    json!({
        "kind": error.kind().to_string(),
        "delivery": error.delivery().to_string(),
        "message": error.to_string(),
        "retry_after_ms": error.retry_after().map(millis),
        // as clients get them
        "outcome": error.outcome,
        "history": error.history,
    })
}

impl CallView {
    /// Makes a call and describes its outcome.
    ///
    /// # Errors
    ///
    /// [`ToolError`] if the tool does not exist. The view describes a call that fails.
    pub(crate) async fn make(
        stack: &Stack,
        recorder: &Recorder,
        tool: &str,
        arguments: impl Into<Bytes>,
        caller: Arc<Caller>,
        pin: Option<ServerId>,
    ) -> Result<Self, ToolError> {
        let record = Arc::new(CallRecord::new());
        let mut call = stack
            .prepare(tool, arguments)
            .inspect_err(|error| {
                // no call was made, so no layer saw it
                if let Some(audit) = stack.audit() {
                    audit.note_refused(tool, Some(&caller), None, error);
                }
            })?
            .with_record(record.clone())
            .with_caller(caller.clone());
        if let Some(pin) = pin {
            call = call.pinned_to(pin);
        }
        let effect = call.plan().effect.to_string();
        let (called, applied) = (call.tool().clone(), call.applied());
        let started = Instant::now();
        let answer = recorder.run(stack, tool, call).await;
        let took = started.elapsed();
        let facts = record.facts();
        let trail = Trail::observed(&called, applied, &facts, Some(&answer));
        let (result, error) = match answer {
            Ok(output) => (raw(&output), None),
            Err(error) => (None, Some(self::error(&error))),
        };
        Ok(Self {
            tool: tool.to_owned(),
            effect,
            server: facts.server.map(|(server, _)| server.to_string()),
            cache: facts.cache.as_str().to_owned(),
            cache_reason: facts.cache_bypass.map(str::to_owned),
            attempts: facts.started_attempts,
            hedge: (facts.hedge != HedgeStatus::None).then(|| facts.hedge.as_str().to_owned()),
            guarded: facts.is_guarded,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            trail: serde_json::to_value(trail).unwrap_or_default(),
            result,
            error,
        })
    }

    /// Returns how long the call took.
    pub(crate) fn took(&self) -> Duration {
        Duration::from_micros(self.took_us)
    }

    /// Returns the result, if the call was answered with one.
    pub(crate) fn output(&self) -> Option<ToolOutput> {
        let raw = self.result.as_ref()?.get();
        ToolOutput::from_json(Bytes::copy_from_slice(raw.as_bytes())).ok()
    }
}

fn raw(output: &ToolOutput) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(output.body()).ok()?;
    RawValue::from_string(text.to_owned()).ok()
}
