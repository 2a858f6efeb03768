//! What a breaker is for.

use std::fmt;

use callward_core::ToolName;

/// What of a server a breaker is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// The whole server: all its tools.
    Server,
    /// The listing of its tools.
    Discovery,
    /// One tool.
    Tool(ToolName),
}

impl Subject {
    /// Returns the tool, if it is one.
    #[must_use]
    pub const fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::Tool(name) => Some(name),
            Self::Discovery | Self::Server => None,
        }
    }

    /// Returns the word used in metrics and tables.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Discovery => "discovery",
            Self::Tool(_) => "tool",
        }
    }
}

impl From<&ToolName> for Subject {
    fn from(tool: &ToolName) -> Self {
        Self::Tool(tool.clone())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => f.pad(name.as_str()),
            Self::Discovery | Self::Server => f.pad(self.as_str()),
        }
    }
}
