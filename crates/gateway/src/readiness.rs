//! `/readyz`: whether calls should be sent here, and what is missing.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use crate::http::{Operator, json};

/// The body of `/readyz`; the status is 200 if it is ready, else 503.
#[derive(Serialize)]
pub(crate) struct Readiness {
    callward: &'static str,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    tools: usize,
    /// The servers that have not listed their tools, or are down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// For operators only: errors may name files and addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<Vec<ServerView>>,
}

#[derive(Serialize)]
struct ServerView {
    id: String,
    set: String,
    up: bool,
    tools: usize,
    error: Option<String>,
}

impl Readiness {
    /// What anybody is told.
    pub(crate) fn of(operator: &Operator) -> Self {
        let servers = operator.stack.servers();
        let reason = if operator.stop.asked().is_cancelled() {
            Some("the gateway is stopping")
        } else if !operator.started.is_finished() {
            Some("servers are starting")
        } else if servers.iter().all(|server| !server.up) {
            Some("no server is up")
        } else {
            None
        };
        let down = servers.iter().filter(|server| !server.up);
        Self {
            callward: env!("CARGO_PKG_VERSION"),
            ready: reason.is_none(),
            reason,
            tools: operator.stack.catalogue().entries().len(),
            missing: down.map(|server| server.id.to_string()).collect(),
            servers: None,
        }
    }

    /// What operators are told.
    pub(crate) fn with_servers(operator: &Operator) -> Self {
        let server = |status: callward::ServerStatus| ServerView {
            id: status.id.to_string(),
            set: status.set.to_string(),
            up: status.up,
            tools: status.tools,
            error: status.last_error,
        };
        let servers = operator.stack.servers().into_iter().map(server).collect();
        Self {
            servers: Some(servers),
            ..Self::of(operator)
        }
    }

    pub(crate) fn respond(&self) -> Response {
        let status = if self.ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        json(status, self)
    }
}
