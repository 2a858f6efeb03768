//! One thing that was found.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use super::{Code, Severity};

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How much it matters: that of its code.
    pub severity: Severity,
    /// The server, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The tool's place among those that were looked at, from 0.
    pub index: usize,
    /// The member to look at: a hint, or `name`, `description`, `inputSchema`.
    pub field: Cow<'static, str>,
    /// What is wrong, with the value.
    pub message: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} [{}] {}: {}: {}; {}",
            self.severity, self.code, self.tool, self.field, self.message, self.advice
        )
    }
}
