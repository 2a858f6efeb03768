//! `/readyz`: whether the gateway is ready, and what is missing.

use axum::http::StatusCode;
use axum::response::Response;
use callward::ServerStatus;
use serde_json::json;

use crate::runtime::Runtime;
use crate::{http, view};

/// Answers with 200 if calls should be sent here, else with 503; with the servers if `with_errors`
/// is given. Their errors may name files and addresses.
pub(crate) fn respond(runtime: &Runtime, with_errors: Option<bool>) -> Response {
    let servers = runtime.stack.servers();
    let reason = if runtime.stop.asked.is_cancelled() {
        Some("the gateway is stopping")
    } else if !runtime.started.is_finished() {
        Some("servers are starting")
    } else if servers.iter().all(|server| !server.up) {
        Some("no server is up")
    } else {
        None
    };
    let down = servers.iter().filter(|server| !server.up);
    let missing: Vec<_> = down.map(|server| server.id.as_str()).collect();
    let server = |server: &ServerStatus| {
        json!({
            "id": server.id,
            "set": server.set,
            "up": server.up,
            "tools": server.tools,
            "error": server.last_error.as_ref().filter(|_| with_errors == Some(true)),
        })
    };
    let body = view::with_values(json!({
        "callward": env!("CARGO_PKG_VERSION"),
        "ready": reason.is_none(),
        "tools": runtime.stack.catalogue().entries().len(),
        "reason": reason,
        "missing": (!missing.is_empty()).then_some(missing),
        "servers": with_errors.map(|_| servers.iter().map(server).collect::<Vec<_>>()),
    }));
    let status = match reason {
        None => StatusCode::OK,
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    http::json(status, &body)
}
