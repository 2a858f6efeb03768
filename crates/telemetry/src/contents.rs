//! What spans tell of the contents of calls.

use callward_core::redact::Redactor;
use callward_core::{ToolCall, ToolOutput};

/// Which contents of calls are written into their spans. By default none are: arguments and results
/// are the caller's, and a trace is read by others.
///
/// What is written goes through a [`Redactor`] first. Of a tool whose results may be shown to nobody
/// but the calling principal (`securityLevel: restricted`), nothing is written at all.
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

    /// Sets what is left out of both, and how long they may be. Default: [`Redactor::default`].
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

    /// Says whether the result of a call may be shown.
    pub(crate) fn shows_result(&self, call: &ToolCall) -> bool {
        self.results && !call.plan().limits.restricted
    }

    /// Returns a result as it may be shown.
    pub(crate) fn result(&self, output: &ToolOutput) -> String {
        self.redactor.redact(output.body())
    }
}
