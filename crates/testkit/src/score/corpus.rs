//! Tools with their authors' labels, one JSON object a line.

use callward_core::Annotations;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One tool of a corpus. Members that say where a tool was found are ignored.
#[derive(Debug, Clone, Deserialize)]
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
    /// What its author declared; a hint left out, or `null`, is not a label.
    #[serde(default)]
    pub declared: Annotations,
}

/// Reads JSON lines. Blank lines are skipped.
///
/// # Errors
///
/// The number of the first line that is not a tool, from one, and what is wrong with it.
pub fn read(text: &str) -> Result<Vec<Case>, String> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
        })
        .collect()
}
