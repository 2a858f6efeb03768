//! Requests for approval: operators list, read and decide them.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use callward::approval::{self, ApprovalError, Approvals, Decision, Request, RequestId};
use callward::core::Approver;
use callward::{Caller, Effect};
use callward_auth::keys::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
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

/// The most requests that are decided at once.
const MOST: usize = 1_000;

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
    /// The requests, if the path names none.
    #[serde(default)]
    ids: Vec<String>,
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
    let shown = async {
        let mut found = listed(of(&runtime)?).await?;
        found.retain(|request| all || !request.state.is_ended());
        found.sort_by_key(|request| request.state as u8);
        Ok(found)
    };
    match shown.await {
        Ok(found) => {
            let shown = found.iter().map(|request| summary(request, &runtime));
            let shown: Vec<_> = shown.collect();
            json(StatusCode::OK, &shown)
        }
        Err((status, message)) => refuse(status, message),
    }
}

/// Shows one request, with its arguments.
pub(super) async fn show(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    Path(id): Path<String>,
) -> Response {
    let shown = async {
        let approvals = of(&runtime)?;
        let all = listed(approvals).await?;
        let request = only(&all, "request", &id, |request| &request.id)?;
        approvals.note_shown(&request, &caller.principal);
        Ok(whole(&request, &runtime))
    };
    respond(shown.await)
}

/// Approves requests, or denies them: that of the path, or those of the body. The sender decides.
pub(super) fn decide(approves: bool) -> Handler {
    post(
        async move |State(runtime): Shared,
                    Extension(caller): Extension<Arc<Caller>>,
                    id: Option<Path<String>>,
                    body: Bytes| {
            let id = id.as_ref().map(|Path(id)| id.as_str());
            let decided = decided(&runtime, &caller, id, &body, approves);
            respond(decided.await)
        },
    )
}

async fn decided(
    runtime: &Runtime,
    caller: &Caller,
    id: Option<&str>,
    body: &[u8],
    approves: bool,
) -> Result<Value, Refused> {
    let invalid = |what: &dyn Display| {
        let message = format!("expected {DECISION}: {what}");
        (StatusCode::BAD_REQUEST, message)
    };
    let body = if body.is_empty() { b"{}" } else { body };
    let order: Order = object(body).map_err(|error| invalid(&error))?;
    let note = checked(order.note).map_err(|error| invalid(&error))?;
    if id.is_some() != order.ids.is_empty() || order.ids.len() > MOST {
        return Err(invalid(&format_args!(
            "and, where the path names no request, `ids`: up to {MOST}, found {}",
            order.ids.len()
        )));
    }
    let approvals = of(runtime)?;
    let all = listed(approvals).await?;
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
    let decide = async |id: &str| {
        let request = only(&all, "request", id, |request| &request.id)?;
        settle(approvals, &request.id, decision.clone()).await
    };
    if let Some(id) = id {
        return Ok(whole(&*decide(id).await?, runtime));
    }
    let mut results = Vec::new();
    // one that fails does not stop the others
    for id in &order.ids {
        results.push(match decide(id).await {
            Ok(request) => json!(summary(&request, runtime)),
            Err((_, message)) => json!({ "id": id, "error": message }),
        });
    }
    Ok(results.into())
}

async fn listed(approvals: &Approvals) -> Result<Vec<Arc<Request>>, Refused> {
    approvals.list().await.map_err(|error| refused(&error))
}

/// Reads an object: in an array, members would count by their places.
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    match body.trim_ascii_start().starts_with(b"{") {
        true => serde_json::from_slice(body),
        false => Err(serde::de::Error::custom("it is not an object")),
    }
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

/// Decides a request.
pub(super) async fn settle(
    approvals: &Approvals,
    id: &RequestId,
    decision: Decision,
) -> Result<Arc<Request>, Refused> {
    let by = decision.by.clone();
    let request = approvals.decide(id, decision).await;
    let request = request.map_err(|error| refused(&error))?;
    tracing::info!(%id, state = %request.state, %by, "an approval is decided");
    Ok(request)
}

pub(super) fn of(runtime: &Runtime) -> Result<&Approvals, Refused> {
    runtime.stack.approvals().ok_or_else(|| {
        let message = "no call waits for an operator: the config has no `[approvals]`".to_owned();
        (StatusCode::NOT_FOUND, message)
    })
}

/// Finds what has this id, or the only one whose id begins so.
pub(super) fn only<T>(
    all: &[Arc<T>],
    what: &str,
    id: &str,
    id_of: fn(&T) -> &RequestId,
) -> Result<Arc<T>, Refused> {
    let is_meant = |one: &&Arc<T>| {
        let known = id_of(one).as_str();
        known == id || (id.len() >= MIN_DIGITS && known.starts_with(id))
    };
    match &all.iter().filter(is_meant).collect::<Vec<_>>()[..] {
        [one] => Ok(Arc::clone(one)),
        [] => {
            let message = format!(
                "no {what} {id:?}: expected an id as `callward approvals` lists it, or the first \
                 {MIN_DIGITS} digits of one at least"
            );
            Err((StatusCode::NOT_FOUND, message))
        }
        _ => {
            let message = format!("several {what}s begin with {id:?}: give more digits");
            Err((StatusCode::BAD_REQUEST, message))
        }
    }
}

pub(super) fn refused(error: &ApprovalError) -> Refused {
    let status = match error {
        ApprovalError::NotFound(_) | ApprovalError::NoGrant(_) => StatusCode::NOT_FOUND,
        ApprovalError::NeedsPattern(_)
        | ApprovalError::Lifetime(_)
        | ApprovalError::TooManyGrants => StatusCode::BAD_REQUEST,
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

pub(super) fn time(ms: u64) -> Timestamp {
    Timestamp::new(UNIX_EPOCH + Duration::from_millis(ms))
}

/// Returns the time until then.
pub(crate) fn left(ms: u64) -> Duration {
    let left = time(ms).time().duration_since(Timestamp::now().time());
    left.unwrap_or_default()
}

/// A request without its arguments. As a type, since there may be thousands.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    id: &'a RequestId,
    state: approval::State,
    set: &'a str,
    tool: &'a str,
    principal: &'a str,
    effect: Effect,
    reason: &'a str,
    by: Approver,
    roles: &'a [String],
    created: Timestamp,
    expires: Timestamp,
    /// How long it can still be decided, or run.
    left_s: Option<u64>,
    decision: Option<&'a Decision>,
    grant: Option<&'a RequestId>,
    decided: Option<Timestamp>,
    /// What keeps it from the service of `[approvals.webhook]`.
    delivery: Option<String>,
}

pub(super) fn summary<'a>(request: &'a Request, runtime: &Runtime) -> Summary<'a> {
    let webhook = runtime.webhook.as_ref();
    use approval::State::{Approved, Pending};
    let asked = &request.asked;
    let is_waiting = matches!(request.state, Pending | Approved);
    Summary {
        id: &request.id,
        state: request.state,
        set: asked.set.as_str(),
        tool: asked.tool.as_str(),
        principal: asked.principal.as_str(),
        effect: asked.effect,
        reason: &asked.reason,
        by: asked.by,
        roles: &asked.roles,
        created: time(request.created_ms),
        expires: time(request.expires_ms),
        left_s: is_waiting.then(|| left(request.expires_ms).as_secs()),
        decision: request.decision.as_ref(),
        grant: request.grant.as_ref(),
        decided: request.decided_ms.map(time),
        delivery: webhook.and_then(|webhook| webhook.failing(&request.id)),
    }
}

/// Describes a request with its arguments: the JSON text that runs, without its secrets.
pub(crate) fn whole(request: &Request, runtime: &Runtime) -> Value {
    let raw = &request.asked.arguments;
    let shown = runtime.redactor.redact(raw.as_bytes());
    let mut view = json!(summary(request, runtime));
    // whether something of it is left out
    view["redacted"] = (*shown != **raw).into();
    view["arguments"] = shown.into();
    view
}
