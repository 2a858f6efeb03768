//! What clients are not offered, though somebody configured or listed it.

use std::fmt;

use callward::registry::Refusal;
use callward::{ServerStatus, Stack};
use serde::{Deserialize, Serialize};

/// A server that is down, or a tool that was refused or is not there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MissingView {
    pub(crate) server: String,
    /// The tool; `None` where it is the whole server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    pub(crate) reason: String,
}

impl MissingView {
    /// Finds all that is missing: servers first, each in the order of the config.
    pub(crate) fn all(stack: &Stack) -> Vec<Self> {
        let catalogue = stack.catalogue();
        let servers = stack.servers();
        let down = servers.iter().filter(|server| !server.up).map(Self::down);
        let refused = catalogue.refused().iter().map(Self::refused);
        down.chain(refused).collect()
    }

    fn down(server: &ServerStatus) -> Self {
        let reason = server.last_error.as_deref();
        Self {
            server: server.id.to_string(),
            tool: None,
            reason: reason.unwrap_or("it does not answer").to_owned(),
        }
    }

    fn refused(refusal: &Refusal) -> Self {
        Self {
            server: refusal.server.to_string(),
            tool: Some(refusal.tool.to_string()),
            reason: refusal.reason.clone(),
        }
    }
}

impl fmt::Display for MissingView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            tool,
            reason,
        } = self;
        match tool {
            Some(tool) => write!(
                f,
                "tool `{tool}` of server `{server}` is not offered: {reason}"
            ),
            None => write!(f, "server `{server}` is down: {reason}"),
        }
    }
}
