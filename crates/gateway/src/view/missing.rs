//! What clients are not offered, though it is configured or listed.

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
            reason: advised(reason.unwrap_or("it does not answer")),
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

/// Adds what to do about the reason that a server is down, if that is known.
pub(crate) fn advised(reason: &str) -> String {
    let advice = [
        (
            "HTTP 401",
            "it asks for authorization: give it `headers = { authorization = \"Bearer ...\" }` in a \
             config file",
        ),
        ("HTTP 403", "it refuses these credentials or this host"),
        (
            "HTTP 404",
            "check the path of its URL: many servers are at /mcp",
        ),
        (
            "HTTP 405",
            "it may have the HTTP+SSE transport of 2024-11-05 only, which is not supported: try its \
             URL for streamable HTTP, often /mcp",
        ),
        (
            "HTTP 501",
            "its URL may not be an MCP endpoint: many servers are at /mcp",
        ),
    ];
    match advice.iter().find(|(status, _)| reason.contains(status)) {
        Some((_, advice)) => format!("{reason}; {advice}"),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_gets_advice() {
        for (status, advice) in [
            ("401 Unauthorized", "authorization"),
            ("405 Method", "HTTP+SSE"),
        ] {
            let reason = advised(&format!("the server answered HTTP {status}"));
            assert!(reason.contains(advice), "{reason}");
        }
        assert_eq!(advised("no connection"), "no connection");
    }
}
