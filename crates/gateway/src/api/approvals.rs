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
use callward::approval::{self, ApprovalError, Approvals, Decision, Request, RequestId};
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
pub(super) type Refused = (StatusCode, String);

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
        let found = found.iter().map(|request| summary(request, &runtime));
        Ok(found.collect())
    };
    respond(listed.await)
}

/// Shows one request, with its arguments.
pub(super) async fn show(State(runtime): Shared, Path(id): Path<String>) -> Response {
    let shown = async {
        let request = find(of(&runtime)?, &id).await?;
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
    let note = checked(order.note).map_err(|error| invalid(&error))?;
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
    settle(runtime, approvals, &request.id, decision).await
}

/// Returns a note, if it says anything.
pub(super) fn checked(note: Option<String>) -> Result<Option<String>, String> {
    let note = note.filter(|note| !note.trim().is_empty());
    match note.as_ref().map_or(0, |note| note.chars().count()) {
        0..=MAX_NOTE_CHARS => Ok(note),
        _ => Err(format!(
            "the note has more than {MAX_NOTE_CHARS} characters"
        )),
    }
}

/// Decides a request, and shows it.
pub(super) async fn settle(
    runtime: &Runtime,
    approvals: &Approvals,
    id: &RequestId,
    decision: Decision,
) -> Result<Value, Refused> {
    let by = decision.by.clone();
    let request = approvals.decide(id, decision).await;
    let request = request.map_err(|error| refused(&error))?;
    tracing::info!(%id, state = %request.state, %by, "an approval is decided");
    Ok(whole(&request, runtime))
}

pub(super) fn of(runtime: &Runtime) -> Result<&Approvals, Refused> {
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

pub(super) fn refused(error: &ApprovalError) -> Refused {
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

pub(super) fn respond(answer: Result<Value, Refused>) -> Response {
    match answer {
        Ok(value) => json(StatusCode::OK, &value),
        Err((status, message)) => refuse(status, message),
    }
}

fn time(ms: u64) -> Timestamp {
    Timestamp::new(UNIX_EPOCH + Duration::from_millis(ms))
}

/// Returns how long a request is still open, unless it ends before.
pub(crate) fn left(request: &Request) -> Duration {
    let end = time(request.expires_ms).time();
    let left = end.duration_since(Timestamp::now().time());
    left.unwrap_or_default()
}

/// Describes a request without its arguments.
pub(super) fn summary(request: &Request, runtime: &Runtime) -> Value {
    let asked = &request.asked;
    let webhook = runtime.webhook.as_ref();
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
        "left_s": is_waiting.then(|| left(request).as_secs()),
        "decision": request.decision,
        "decided": request.decided_ms.map(time),
        // what keeps it from the service of `[approvals.webhook]`
        "delivery": webhook.and_then(|webhook| webhook.failing(&request.id)),
    })
}

/// Describes a request with its arguments: the JSON text that runs, without its secrets.
pub(crate) fn whole(request: &Request, runtime: &Runtime) -> Value {
    let raw = &request.asked.arguments;
    let shown = runtime.redactor.redact(raw.as_bytes());
    let mut view = summary(request, runtime);
    // whether something of it is left out
    view["redacted"] = (*shown != **raw).into();
    view["arguments"] = shown.into();
    view
}
