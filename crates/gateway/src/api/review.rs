//! Changed tools that wait for approval, and what calls suggest: operators read what differs, and
//! approve or accept it.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use callward::registry::{ApproveError, Suggestion, ToolChange};
use callward::{Caller, ReplicaSetId, ToolName};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::approvals::{Refused, object, respond};
use crate::runtime::Runtime;

const ORDER: &str = "an object with `approve`, objects with `set`, `tool` and `digest`, or with \
                     `accept`, ids; as they are listed, up to 10000";
const MOST: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    #[serde(default)]
    approve: Vec<Which>,
    /// The ids of suggestions.
    #[serde(default)]
    accept: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    set: ReplicaSetId,
    tool: ToolName,
    digest: String,
}

/// Lists what waits, with the differences, and what is suggested, with the evidence.
pub(super) async fn list(State(runtime): Shared) -> Response {
    runtime.started.finished().await;
    let catalogue = runtime.stack.catalogue();
    let held: Vec<_> = catalogue.held().iter().map(|held| view(held)).collect();
    respond(Ok(
        json!({ "held": held, "suggestions": runtime.stack.suggestions() }),
    ))
}

fn view(held: &ToolChange) -> Value {
    let mut view = json!(held);
    for (change, shown) in held
        .changes
        .iter()
        .zip(view["changes"].as_array_mut().into_iter().flatten())
    {
        shown["text"] = change.to_string().into();
    }
    view
}

/// Approves definitions and accepts suggestions. The sender does; one that cannot be approved or
/// accepted does not stop the others.
pub(super) async fn decide(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    body: Bytes,
) -> Response {
    let order = object::<Order>(&body).map_err(|error| error.to_string());
    let order = order.and_then(|order| match order.approve.len() + order.accept.len() {
        0..=MOST => Ok(order),
        more => Err(format!("found {more}")),
    });
    let order = match order {
        Ok(order) => order,
        Err(error) => {
            let message = format!("expected {ORDER}: {error}");
            return respond(Err((StatusCode::BAD_REQUEST, message)));
        }
    };
    // each is written before it counts
    let done = tokio::task::spawn_blocking(move || {
        let each = order
            .approve
            .iter()
            .map(|which| approved(&runtime, &caller, which));
        let suggested = order.accept.iter();
        let suggested = suggested.map(|id| accepted(&runtime, &caller, id));
        each.chain(suggested).collect()
    });
    let done = done.await.map_err(|error| failed(&error.to_string()));
    respond(done)
}

fn failed(message: &str) -> Refused {
    (StatusCode::INTERNAL_SERVER_ERROR, message.to_owned())
}

fn approved(runtime: &Runtime, caller: &Caller, which: &Which) -> Value {
    let Which { set, tool, digest } = which;
    let catalogue = runtime.stack.catalogue();
    let held = catalogue
        .held()
        .iter()
        .find(|held| held.set == *set && held.tool == *tool && *held.digest == **digest);
    let mut result = json!({ "set": set, "tool": tool, "digest": digest });
    let done: Result<(), ApproveError> = runtime.stack.approve(set, tool, digest);
    if let Err(error) = done {
        result["error"] = error.to_string().into();
        return result;
    }
    let by = caller.principal.as_str();
    tracing::info!(%set, %tool, digest, by, "a changed tool is approved");
    let changes = held.map_or(&[][..], |held| &held.changes);
    note(
        runtime,
        json!({
            "outcome": "reviewed",
            "set": set,
            "tool": tool,
            "definition": digest,
            "changed": changes.iter().map(|change| &change.field).collect::<Vec<_>>(),
            "by": by,
        }),
    );
    result
}

fn accepted(runtime: &Runtime, caller: &Caller, id: &str) -> Value {
    let suggestion = match runtime.stack.accept(id) {
        Ok(accepted) => accepted,
        Err(error) => return json!({ "id": id, "error": error.to_string() }),
    };
    let Suggestion { set, tool, .. } = &suggestion;
    let by = caller.principal.as_str();
    tracing::info!(%set, %tool, id, by, "a suggestion is accepted");
    note(
        runtime,
        json!({
            "outcome": "accepted",
            "set": set,
            "tool": tool,
            "suggestion": id,
            "changed": [suggestion.change],
            "by": by,
        }),
    );
    json!(suggestion)
}

/// Writes it to the audit log.
fn note(runtime: &Runtime, members: Value) {
    if let (Some(log), Value::Object(members)) = (runtime.stack.audit(), members) {
        log.note_approval(members);
    }
}
