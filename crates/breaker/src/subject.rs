//! What a breaker is for.

use std::fmt;

use callward_core::{Owner, Principal, ServerId, SessionId, ToolName};

/// How much of a session's id is shown: enough to tell it from others, too little to use.
const SHOWN_SESSION_CHARS: usize = 8;

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

/// The key of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) server: ServerId,
    pub(crate) subject: Subject,
    /// Whose instance of the server; `None` where all callers share it.
    pub(crate) owner: Option<InstanceOwner>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct InstanceOwner {
    principal: Principal,
    session: Option<SessionId>,
}

impl Subject {
    /// Returns the tool, if it is one.
    #[must_use]
    pub const fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::Tool(name) => Some(name),
            Self::Server | Self::Discovery => None,
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

impl Key {
    pub(crate) fn new(server: &ServerId, subject: Subject, owner: Option<Owner<'_>>) -> Self {
        Self {
            server: server.clone(),
            subject,
            owner: owner.map(InstanceOwner::of),
        }
    }
}

impl InstanceOwner {
    pub(crate) fn of(owner: Owner<'_>) -> Self {
        Self {
            principal: owner.principal.clone(),
            session: owner.session.cloned(),
        }
    }
}

/// The principal, with the beginning of the session's id after a slash.
impl fmt::Display for InstanceOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.principal.fmt(f)?;
        let Some(session) = &self.session else {
            return Ok(());
        };
        let shown: String = session.as_str().chars().take(SHOWN_SESSION_CHARS).collect();
        write!(f, "/{shown}")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)?;
        if let Some(tool) = self.subject.tool() {
            write!(f, "::{tool}")?;
        }
        f.write_str(self.owner.as_ref().map_or("", |_| ", one instance"))
    }
}
