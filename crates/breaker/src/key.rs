//! What a breaker is kept by.

use std::fmt;

use callward_core::{Owner, Principal, ServerId, SessionId};

use crate::Subject;

/// How much of a session's id is shown: enough to tell it from others, too little to use.
const SHOWN_SESSION_CHARS: usize = 8;

/// What a breaker is for.
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
        let instance = match self.owner {
            Some(_) => ", one instance",
            None => "",
        };
        match &self.subject {
            Subject::Server => write!(f, "{}{instance}", self.server),
            Subject::Discovery => write!(f, "discovery of {}{instance}", self.server),
            Subject::Tool(tool) => write!(f, "{}::{tool}{instance}", self.server),
        }
    }
}
