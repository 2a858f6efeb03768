//! Servers and tools that are configured or listed, but not offered.

use callward::Stack;
use serde_json::{Value, json};

/// Describes all that is missing: servers that are down, and then tools that were refused or are
/// not there, each in the order of the config.
pub(crate) fn missing(stack: &Stack) -> Vec<Value> {
    let servers = stack.servers();
    let down = servers.iter().filter(|server| !server.up).map(|server| {
        let reason = server.last_error.as_deref();
        let reason = advised(reason.unwrap_or("it does not answer"));
        json!({ "server": server.id, "reason": reason })
    });
    let catalogue = stack.catalogue();
    let refused = catalogue.refused().iter().map(|refusal| {
        json!({ "server": refusal.server, "tool": refusal.tool, "reason": refusal.reason })
    });
    down.chain(refused).collect()
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
