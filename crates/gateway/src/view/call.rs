//! What became of one call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::{FailedAttempt, HedgeStatus, OutcomeUnknown};
use callward::{
    CallRecord, Caller, Delivery, ErrorKind, ServerId, Stack, ToolError, ToolOutput, Trail,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::millis;
use crate::record::Recorder;

/// What became of one call.
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
    /// What became of a second attempt beside a slow first: `sent` or `won`; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hedge: Option<String>,
    /// Whether the loop guard answered in the server's place.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) guarded: bool,
    pub(crate) took_us: u64,
    /// Everything that was decided about it, in order.
    #[serde(default)]
    pub(crate) trail: Value,
    /// The raw result, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorView>,
}

/// Why a call failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ErrorView {
    pub(crate) kind: String,
    pub(crate) delivery: String,
    pub(crate) message: String,
    /// How long the server is to be left alone, or until a turn comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ms: Option<u64>,
    /// What is known of a write that may have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<OutcomeView>,
    /// All attempts, in their order, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<AttemptView>,
}

/// What is known of a write that was sent and not answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OutcomeView {
    pub(crate) set: String,
    /// As its server spells it.
    pub(crate) tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    pub(crate) argument_bytes: usize,
    /// How long before the error it was sent.
    pub(crate) sent_ms_ago: u64,
    /// What went wrong after sending.
    pub(crate) failure: String,
    pub(crate) detail: String,
    /// The tool to check with what it did, by the name clients call it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verify_with: Option<String>,
}

/// One attempt that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttemptView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    pub(crate) kind: String,
    pub(crate) delivery: String,
    /// What the server answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
    /// The pause before it.
    pub(crate) pause_ms: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape serde asks for"
)]
const fn is_false(said: &bool) -> bool {
    !*said
}

impl ErrorView {
    /// Refuses a request before anything was done for it.
    pub(crate) fn not_sent(message: &str) -> Self {
        Self {
            kind: ErrorKind::InvalidCall.to_string(),
            delivery: Delivery::NotSent.to_string(),
            message: message.to_owned(),
            retry_after_ms: None,
            outcome: None,
            history: Vec::new(),
        }
    }

    pub(crate) fn of(error: &ToolError) -> Self {
        Self {
            kind: error.kind().to_string(),
            delivery: error.delivery().to_string(),
            message: error.to_string(),
            retry_after_ms: error.retry_after().map(millis),
            outcome: error.outcome().map(OutcomeView::of),
            history: error.history().iter().map(AttemptView::of).collect(),
        }
    }
}

impl OutcomeView {
    fn of(known: &OutcomeUnknown) -> Self {
        Self {
            set: known.set.to_string(),
            tool: known.tool.to_string(),
            server: known.server.as_ref().map(ToString::to_string),
            argument_bytes: known.argument_bytes,
            sent_ms_ago: millis(known.sent_ago),
            failure: known.failure.to_string(),
            detail: known.detail.to_string(),
            verify_with: known.verify_with.as_ref().map(ToString::to_string),
        }
    }
}

impl AttemptView {
    fn of(attempt: &FailedAttempt) -> Self {
        Self {
            server: attempt.server.as_ref().map(ToString::to_string),
            kind: attempt.kind.to_string(),
            delivery: attempt.delivery.to_string(),
            code: attempt.code,
            message: attempt.message.to_string(),
            pause_ms: millis(attempt.pause),
        }
    }
}

impl CallView {
    /// Makes a call and writes down what became of it.
    ///
    /// # Errors
    ///
    /// [`ToolError`] if there is no such tool. A call that fails is told in the view.
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
        let trail = Trail::observed_of(&called, applied, &record, Some(&answer));
        let (result, error) = match answer {
            Ok(output) => (raw(&output), None),
            Err(error) => (None, Some(ErrorView::of(&error))),
        };
        Ok(Self {
            tool: tool.to_owned(),
            effect,
            server: record.server().map(|(server, _)| server.to_string()),
            cache: record.cache().as_str().to_owned(),
            cache_reason: record.cache_bypass().map(str::to_owned),
            attempts: record.started_attempts(),
            hedge: (record.hedge() != HedgeStatus::None)
                .then(|| record.hedge().as_str().to_owned()),
            guarded: record.was_guarded(),
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
