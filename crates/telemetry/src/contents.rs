//! Arguments and results in spans.

use callward_core::redact::Redactor;
use callward_core::{ToolCall, ToolOutput};

/// Selects which contents of calls are written into their spans. Default: none, as arguments and
/// results belong to the caller and others read traces.
///
/// A [`Redactor`] removes secrets first. Contents of a tool that only the calling principal may see
/// (`securityLevel: restricted`) are never written.
///
/// ```
/// use callward_telemetry::Contents;
///
/// let mut arguments_only = Contents::default();
/// arguments_only.arguments = true;
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Contents {
    /// Writes arguments, as `gen_ai.tool.call.arguments`.
    pub arguments: bool,
    /// Writes results, as `gen_ai.tool.call.result`.
    pub results: bool,
    /// What is removed from both, and how long they may be.
    pub redactor: Redactor,
}

impl Contents {
    /// Returns the arguments as they may be shown, if they may.
    pub(crate) fn arguments(&self, call: &ToolCall) -> Option<String> {
        let is_shown = self.arguments && !call.plan().limits.restricted;
        is_shown.then(|| self.redactor.redact(call.arguments()))
    }

    /// Returns `true` if the result of a call may be shown.
    pub(crate) fn shows_result(&self, call: &ToolCall) -> bool {
        self.results && !call.plan().limits.restricted
    }

    /// Returns a result as it may be shown.
    pub(crate) fn result(&self, output: &ToolOutput) -> String {
        self.redactor.redact(output.body())
    }
}
