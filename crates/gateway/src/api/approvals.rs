//! Requests for approval: operators list, read and decide them.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use callward::Caller;
use callward::approval::{self, ApprovalError, Approvals, Decision, Request};
use callward_auth::keys::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Handler, Shared, refuse};
use crate::http::json;
use crate::runtime::Runtime;

/// The query that lists requests that have ended, too.
pub(super) const ALL: &str = "all";

/// The most characters of a note.
const MAX_NOTE_CHARS: usize = 1_000;

/// The fewest digits of an id that name a request.
const MIN_DIGITS: usize = 4;

const DECISION: &str = "no body, or an object with `note`, a text, and `channel` (api or cli)";

/// Where a decision was taken.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Channel {
    #[default]
    Api,
    Cli,
}

/// The body of a decision.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    note: Option<String>,
    #[serde(default)]
    channel: Channel,
}

/// Why a request is not shown or decided.
type Refused = (StatusCode, String);

/// Lists what is open: pending requests first, and of equal states the oldest.
pub(super) async fn list(State(runtime): Shared, RawQuery(query): RawQuery) -> Response {
    let all = match query.as_deref() {
        None | Some("") => false,
        Some(ALL) => true,
        Some(other) => {
            let message = format!("expected nothing but `{ALL}` in the query, found {other:?}");
            return refuse(StatusCode::BAD_REQUEST, message);
        }
    };
    let listed = async {
        let mut found = of(&runtime)?
            .list()
            .await
            .map_err(|error| refused(&error))?;
        found.retain(|request| all || !request.state.is_ended());
        found.sort_by_key(|request| request.state as u8);
        Ok(found.iter().map(|request| summary(request)).collect())
    };
    respond(listed.await)
}

/// Shows one request, with its arguments.
pub(super) async fn show(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    Path(id): Path<String>,
) -> Response {
    let shown = async {
        let approvals = of(&runtime)?;
        let request = find(approvals, &id).await?;
        approvals.note_shown(&request, &caller.principal);
        Ok(whole(&request, &runtime))
    };
    respond(shown.await)
}

/// Approves a request, or denies it. The sender decides.
pub(super) fn decide(approves: bool) -> Handler {
    post(
        async move |State(runtime): Shared,
                    Extension(caller): Extension<Arc<Caller>>,
                    Path(id): Path<String>,
                    body: Bytes| {
            let decided = decided(&runtime, &caller, &id, &body, approves);
            respond(decided.await)
        },
    )
}

async fn decided(
    runtime: &Runtime,
    caller: &Caller,
    id: &str,
    body: &[u8],
    approves: bool,
) -> Result<Value, Refused> {
    let invalid = |what: &dyn Display| {
        let message = format!("expected {DECISION}: {what}");
        (StatusCode::BAD_REQUEST, message)
    };
    let body = if body.is_empty() { b"{}" } else { body };
    let order: Order = serde_json::from_slice(body).map_err(|error| invalid(&error))?;
    let note = order.note.filter(|note| !note.trim().is_empty());
    if note.as_ref().map_or(0, |note| note.chars().count()) > MAX_NOTE_CHARS {
        return Err(invalid(&format_args!(
            "the note has more than {MAX_NOTE_CHARS} characters"
        )));
    }
    let approvals = of(runtime)?;
    let request = find(approvals, id).await?;
    let decision = Decision {
        approves,
        by: caller.principal.clone(),
        roles: caller.credential.roles.iter().cloned().collect(),
        channel: match order.channel {
            Channel::Api => "api".to_owned(),
            Channel::Cli => "cli".to_owned(),
        },
        note,
    };
    let request = approvals.decide(&request.id, decision).await;
    let request = request.map_err(|error| refused(&error))?;
    let (id, by) = (&request.id, &caller.principal);
    tracing::info!(%id, state = %request.state, %by, "an approval is decided");
    Ok(whole(&request, runtime))
}

fn of(runtime: &Runtime) -> Result<&Approvals, Refused> {
    runtime.stack.approvals().ok_or_else(|| {
        let message = "no call waits for an operator: the config has no `[approvals]`".to_owned();
        (StatusCode::NOT_FOUND, message)
    })
}

/// Finds the request with this id, or the only one whose id begins so.
async fn find(approvals: &Approvals, id: &str) -> Result<Arc<Request>, Refused> {
    let all = approvals.list().await.map_err(|error| refused(&error))?;
    let is_meant = |request: &&Arc<Request>| {
        let known = request.id.as_str();
        known == id || (id.len() >= MIN_DIGITS && known.starts_with(id))
    };
    match &all.iter().filter(is_meant).collect::<Vec<_>>()[..] {
        [one] => Ok(Arc::clone(one)),
        [] => {
            let message = format!(
                "no request {id:?}: expected an id as `callward approvals list` shows it, or the \
                 first {MIN_DIGITS} digits of one at least"
            );
            Err((StatusCode::NOT_FOUND, message))
        }
        _ => {
            let message = format!("several requests begin with {id:?}: give more digits");
            Err((StatusCode::BAD_REQUEST, message))
        }
    }
}

fn refused(error: &ApprovalError) -> Refused {
    let status = match error {
        ApprovalError::NotFound(_) => StatusCode::NOT_FOUND,
        ApprovalError::Ended { .. } => StatusCode::CONFLICT,
        ApprovalError::DecidedByTheOneThatAsks | ApprovalError::LacksRole(_) => {
            StatusCode::FORBIDDEN
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let advice = match error {
        ApprovalError::DecidedByTheOneThatAsks => ": another operator has to",
        ApprovalError::Ended { .. } => " already",
        _ => "",
    };
    (status, format!("{error}{advice}"))
}

fn respond(answer: Result<Value, Refused>) -> Response {
    match answer {
        Ok(value) => json(StatusCode::OK, &value),
        Err((status, message)) => refuse(status, message),
    }
}

/// Describes a request without its arguments.
fn summary(request: &Request) -> Value {
    let asked = &request.asked;
    let time = |ms: u64| Timestamp::new(UNIX_EPOCH + Duration::from_millis(ms));
    let left = || {
        let end = time(request.expires_ms).time();
        let left = end.duration_since(Timestamp::now().time());
        left.unwrap_or_default().as_secs()
    };
    let is_waiting = matches!(
        request.state,
        approval::State::Pending | approval::State::Approved
    );
    json!({
        "id": request.id,
        "state": request.state,
        "set": asked.set,
        "tool": asked.tool,
        "principal": asked.principal.as_str(),
        "effect": asked.effect,
        "reason": asked.reason,
        "by": asked.by,
        "roles": asked.roles,
        "arguments_digest": asked.arguments_digest,
        "created": time(request.created_ms),
        "expires": time(request.expires_ms),
        // how long it can still be decided, or run
        "left_s": is_waiting.then(left),
        "decision": request.decision,
        "decided": request.decided_ms.map(time),
    })
}

/// Describes a request with its arguments: the JSON text that runs, without its secrets.
fn whole(request: &Request, runtime: &Runtime) -> Value {
    let raw = &request.asked.arguments;
    let shown = runtime.redactor.redact(raw.as_bytes());
    let mut view = summary(request);
    // whether something of it is left out
    view["redacted"] = (*shown != **raw).into();
    view["arguments"] = shown.into();
    view
}
