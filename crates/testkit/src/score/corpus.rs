//! Tools with their authors' labels, one JSON object a line.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The hints a tool's author declared; `None` is not a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the specification has exactly these four"
)]
pub struct Labels {
    /// `readOnlyHint`
    pub read_only_hint: Option<bool>,
    /// `destructiveHint`
    pub destructive_hint: Option<bool>,
    /// `idempotentHint`
    pub idempotent_hint: Option<bool>,
    /// `openWorldHint`
    pub open_world_hint: Option<bool>,
}

/// One tool of a corpus. Members that say where a tool was found are ignored.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Case {
    /// The server's name.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// The display name.
    #[serde(default)]
    pub title: Option<String>,
    /// The description.
    #[serde(default)]
    pub description: Option<String>,
    /// The schema of the arguments.
    #[serde(default)]
    pub input_schema: Option<Box<RawValue>>,
    /// What its author declared.
    #[serde(default)]
    pub declared: Labels,
}

/// A line that is not a tool.
#[derive(Debug)]
pub struct BadLine {
    /// The line's number, from one.
    line: usize,
    error: serde_json::Error,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl std::error::Error for BadLine {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Reads JSON lines. Blank lines are skipped.
///
/// # Errors
///
/// [`BadLine`] names the first line that is not a tool.
pub fn read(text: &str) -> Result<Vec<Case>, BadLine> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| BadLine {
                line: at + 1,
                error,
            })
        })
        .collect()
}
