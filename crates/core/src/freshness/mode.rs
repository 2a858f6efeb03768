//! What an operator says about how long results are kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What decides how long the results of a server's reads are kept, where neither the operator nor the
/// server says it. In configuration: `"learned"` or `"fixed"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FreshnessMode {
    /// Evidence: results are served for as long as repeated calls almost never had another answer.
    /// Right for servers that nobody described.
    Learned,
    /// The TTL of the plan. Right where the author of the stack knows the tools. Default.
    #[default]
    Fixed,
}

impl FreshnessMode {
    /// Returns the word for it in configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Learned => "learned",
            Self::Fixed => "fixed",
        }
    }
}

/// What an operator says about the results of a tool, or of all tools of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caching {
    /// Nothing is kept.
    Never,
    /// Results of reads are kept for this long, also if the server says otherwise.
    For(Duration),
    /// The mode decides, also if something else is said of all tools of the server.
    ByMode,
}
