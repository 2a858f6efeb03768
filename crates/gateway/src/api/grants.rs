//! Grants: operators give, list and revoke standing permission; and which grants would spare
//! questions that are always approved.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use callward::approval::{Asked, Grant, Pattern, Request};
use callward::core::human::duration;
use callward::{Caller, Effect, Explanation, Principal};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Shared;
use super::approvals::{Refused, left, of, only, refused, respond, time};
use crate::config::show_duration;
use crate::runtime::Runtime;

const GRANT: &str = "an object with `tool`, and `when` as in a config, `for`, `uses` (a number or \
                     \"unlimited\") and `until` (a duration) if they are not the default";

/// The body of a new grant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    tool: String,
    when: Option<Pattern>,
    r#for: Option<String>,
    uses: Option<Uses>,
    #[serde(default, with = "duration")]
    until: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`uses` is a number above 0, or \"unlimited\"")]
enum Uses {
    Count(NonZeroU32),
    Any(Unlimited),
}

#[derive(Debug, Deserialize)]
enum Unlimited {
    #[serde(rename = "unlimited")]
    Unlimited,
}

/// Lists grants.
pub(super) async fn list(State(runtime): Shared) -> Response {
    let listed = async {
        let all = of(&runtime)?.grants().await;
        let all = all.map_err(|error| refused(&error))?;
        Ok(all.iter().map(|grant| view(grant, &runtime)).collect())
    };
    respond(listed.await)
}

/// Makes a grant. The sender gives it.
pub(super) async fn give(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    body: Bytes,
) -> Response {
    runtime.started.finished().await;
    respond(given(&runtime, &caller, &body).await)
}

async fn given(runtime: &Runtime, caller: &Caller, body: &[u8]) -> Result<Value, Refused> {
    let approvals = of(runtime)?;
    let order: Order = serde_json::from_slice(body).map_err(|error| {
        let message = format!("expected {GRANT}: {error}");
        (StatusCode::BAD_REQUEST, message)
    })?;
    let catalogue = runtime.stack.catalogue();
    let entry = catalogue.find(&order.tool).ok_or_else(|| {
        let message = format!("no tool {:?}: expected one as `SET.TOOL`", order.tool);
        (StatusCode::NOT_FOUND, message)
    })?;
    let grant = Grant::new(entry.tool(), caller.principal.clone());
    let mut grant = grant.map_err(|error| refused(&error))?;
    grant.when = order.when;
    grant.principal = order.r#for.map(Principal::new);
    match order.uses {
        Some(Uses::Count(count)) => grant.uses = Some(count),
        Some(Uses::Any(Unlimited::Unlimited)) => grant.uses = None,
        None => {}
    }
    if let Some(time) = order.until {
        grant = grant.lasting(time);
    }
    let grant = approvals.grant(grant).await;
    let grant = grant.map_err(|error| refused(&error))?;
    tracing::info!(id = %grant.id, tool = %order.tool, by = %grant.by, "a grant is given");
    audit(runtime, &grant, "granted", &grant.by);
    Ok(view(&grant, runtime))
}

/// Revokes a grant.
pub(super) async fn revoke(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    Path(id): Path<String>,
) -> Response {
    let revoked = async {
        let approvals = of(&runtime)?;
        let all = approvals.grants().await.map_err(|error| refused(&error))?;
        let grant = only(&all, "grant", &id, |grant| &grant.id)?;
        let done = approvals.revoke(&grant.id).await;
        done.map_err(|error| refused(&error))?;
        tracing::info!(id = %grant.id, by = %caller.principal, "a grant is revoked");
        audit(&runtime, &grant, "revoked", &caller.principal);
        Ok(view(&grant, &runtime))
    };
    respond(revoked.await)
}

/// Records in the audit log, if there is one, what happens to a grant.
fn audit(runtime: &Runtime, grant: &Grant, outcome: &str, by: &Principal) {
    let pattern = json!(grant.when).to_string();
    let pattern = runtime.redactor.redact(pattern.as_bytes());
    let members = json!({
        "outcome": outcome,
        "grant": grant.id,
        "set": grant.set,
        "tool": grant.tool,
        "principal": grant.principal.as_ref().map(Principal::as_str),
        "when": serde_json::from_str::<Value>(&pattern).unwrap_or_default(),
        "uses": grant.uses.map_or_else(|| "unlimited".into(), |uses| json!(uses)),
        "used": grant.used,
        "expires": time(grant.expires_ms),
        "by": by.as_str(),
    });
    if let (Some(log), Value::Object(members)) = (runtime.stack.audit(), members) {
        log.note_approval(members);
    }
}

/// Adds the grants that would answer to an explanation: of a call, or of some call of the tool.
pub(super) async fn explain(runtime: &Runtime, of: &Explanation, view: &mut Value) {
    let Some(approvals) = runtime.stack.approvals() else {
        return;
    };
    let asked = of.call.as_ref().map(|call| Asked::of(call, ""));
    let answers = |grant: &Arc<Grant>| match &asked {
        Some(Ok(asked)) => grant.answers(asked),
        Some(Err(_)) => false,
        None => grant.is_for(&of.tool) && grant.has_uses(),
    };
    let mut grants = approvals.grants().await.unwrap_or_default();
    grants.retain(answers);
    let mut text = view["text"].as_str().unwrap_or_default().to_owned();
    for grant in &grants {
        let shown = self::view(grant, runtime);
        let part = |name: &str| shown[name].as_str().unwrap_or_default().to_owned();
        let left = grant.uses.map_or_else(
            || "any number of uses".to_owned(),
            |uses| format!("{} uses left", uses.get().saturating_sub(grant.used)),
        );
        text += &format!(
            "\nGrant {} of {} answers {}: {left}, until {}.\n",
            grant.id,
            grant.by,
            if of.call.is_some() { "it" } else { "calls" },
            part("expires"),
        );
    }
    view["grants"] = grants
        .iter()
        .map(|grant| self::view(grant, runtime))
        .collect();
    view["text"] = text.into();
}

fn state(grant: &Grant, runtime: &Runtime) -> &'static str {
    let catalogue = runtime.stack.catalogue();
    let tool = catalogue.find(&format!("{}.{}", grant.set, grant.tool));
    match tool {
        Some(entry) if !grant.is_for(entry.tool()) => "void",
        _ if grant.has_uses() => "active",
        _ => "used",
    }
}

fn view(grant: &Grant, runtime: &Runtime) -> Value {
    json!({
        "id": grant.id,
        // `void`: the tool has another definition by now
        "state": state(grant, runtime),
        "set": grant.set,
        "tool": grant.tool,
        "when": grant.when,
        // `null`: of any principal, any number
        "principal": grant.principal.as_ref().map(Principal::as_str),
        "uses": grant.uses,
        "used": grant.used,
        "by": grant.by.as_str(),
        "created": time(grant.created_ms),
        "expires": time(grant.expires_ms),
        "left_s": left(grant.expires_ms).as_secs(),
    })
}

/// How often a person approves before a grant is suggested.
const OFTEN: usize = 5;

/// Lists the tools that were asked about often and always approved, with the grant that would have
/// answered.
pub(super) async fn digest(State(runtime): Shared) -> Response {
    let listed = async {
        let all = of(&runtime)?.list().await;
        let all = all.map_err(|error| refused(&error))?;
        let mut tools = BTreeMap::<_, Vec<&Request>>::new();
        for request in all
            .iter()
            .filter(|one| one.state.is_ended() && one.grant.is_none())
        {
            let tool = (request.asked.set.as_str(), request.asked.tool.as_str());
            tools.entry(tool).or_default().push(request);
        }
        let tools = tools.values().filter(|all| {
            let approved = |one: &&Request| one.decision.as_ref().is_some_and(|it| it.approves);
            all.len() >= OFTEN && all.iter().all(approved)
        });
        Ok(tools.map(|all| suggestion(all, &runtime)).collect())
    };
    respond(listed.await)
}

/// Describes the grant for requests of one tool: for what is the same in all of them.
fn suggestion(all: &[&Request], runtime: &Runtime) -> Value {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let mut shared = Map::new();
    let mut principal = None;
    for (index, request) in all.iter().enumerate() {
        let asked = &request.asked;
        let arguments = runtime.redactor.redact(asked.arguments.as_bytes());
        let mut shown: Map<String, Value> = serde_json::from_str(&arguments).unwrap_or_default();
        let raw: Map<String, Value> = serde_json::from_str(&asked.arguments).unwrap_or_default();
        // no secrets, and nothing that a condition would read as something else
        let is_plain = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
        shown.retain(|name, value| {
            raw.get(name) == Some(value)
                && is_plain(value)
                && !name.is_empty()
                && !name.starts_with('/')
        });
        if index == 0 {
            (shared, principal) = (shown, Some(&asked.principal));
        } else {
            shared.retain(|name, value| shown.get(name) == Some(value));
            principal = principal.filter(|principal| **principal == asked.principal);
        }
    }
    let Some(one) = all.first().map(|one| &one.asked) else {
        return Value::Null;
    };
    let needs_pattern = all
        .iter()
        .any(|one| one.asked.effect == Effect::Destructive);
    let grant = json!({
        "tool": format!("{}.{}", one.set, one.tool),
        "when": (!shared.is_empty()).then_some(&shared),
        "for": principal.map(Principal::as_str),
        "uses": all.len(),
        "until": show_duration(DAY),
    });
    json!({
        "set": one.set,
        "tool": one.tool,
        "asked": all.len(),
        // `null`: the tool needs a pattern, and the arguments have nothing in common
        "grant": (!needs_pattern || !shared.is_empty()).then_some(grant),
    })
}
