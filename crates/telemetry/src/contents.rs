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
/// use callward_core::redact::Redactor;
/// use callward_telemetry::Contents;
///
/// let arguments_only = Contents::none().with_arguments().with_redactor(Redactor::default());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Contents {
    arguments: bool,
    results: bool,
    redactor: Redactor,
}

impl Contents {
    /// Writes nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Writes arguments, as `gen_ai.tool.call.arguments`.
    #[must_use]
    pub fn with_arguments(mut self) -> Self {
        self.arguments = true;
        self
    }

    /// Writes results, as `gen_ai.tool.call.result`.
    #[must_use]
    pub fn with_results(mut self) -> Self {
        self.results = true;
        self
    }

    /// Sets what is removed from both, and how long they may be. Default: [`Redactor::default`].
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

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
