//! What the spans of all calls of one tool say alike: written once.

use std::fmt;

use callward_core::refine::Applied;
use callward_core::{ByTool, ToolCall};

use crate::names;

/// The texts of each tool that was traced.
#[derive(Debug, Default)]
pub(super) struct Texts(ByTool<Text>);

/// The texts of one plan of one tool.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) annotations: String,
    pub(super) plan: String,
    /// What OpenTelemetry shows of a call that came as an MCP request.
    served: String,
    /// What it shows of a call from within the process.
    local: String,
}

impl Texts {
    /// Reads the texts of a call. Only those of a tool's own plan are kept: of rules over arguments there
    /// may be many.
    pub(super) fn with<R>(&self, call: &ToolCall, read: impl FnOnce(&Text) -> R) -> R {
        match call.applied() {
            Applied::Tool => self.0.with(call.tool(), || Text::of(call), read),
            _ => read(&Text::of(call)),
        }
    }
}

impl Text {
    fn of(call: &ToolCall) -> Self {
        let named = |verb: &dyn fmt::Display| format!("{verb} {}", call.tool().name());
        Self {
            annotations: call.annotations_shown().to_string(),
            plan: call.plan().in_line().to_string(),
            served: named(&names::METHOD_TOOLS_CALL),
            local: named(&names::OPERATION_EXECUTE_TOOL),
        }
    }

    /// Returns what OpenTelemetry shows of a call.
    pub(super) fn name(&self, call: &ToolCall) -> &str {
        match call.inbound() {
            Some(_) => &self.served,
            None => &self.local,
        }
    }
}
