//! Requests for approval where operators are: as a stream of events, and as signed answers of the
//! service of `[approvals.webhook]`.

use std::fmt::Display;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{self, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use callward::Principal;
use callward::approval::{Decision, RequestId};
use callward::core::is_invisible;
use callward_auth::Reason;
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::approvals::{Refused, checked, object, of, refused, respond, settle, summary, whole};
use super::{Handler, Shared, events, refuse};
use crate::runtime::Runtime;

/// The longest body of an answer, in bytes.
const MAX_ANSWER: usize = 16 * 1024;
/// How long its body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest name of who answers, in bytes.
const MAX_NAME: usize = 256;
const ANSWER: &str = "an object with `id`, `approves`, `by` (1 to 256 visible bytes, no space at an end), and perhaps \
                      `roles` and `note`";

/// Sends each request that is new or has another state, from now on. A reader that falls behind
/// gets the number of events that it lost.
pub(super) async fn follow(State(runtime): Shared) -> Response {
    let listener = match of(&runtime) {
        Ok(approvals) => approvals.events(),
        Err((status, message)) => return refuse(status, message),
    };
    let shown = runtime.clone();
    let states = states(listener, move |request| json!(summary(&request, &shown)));
    events::respond(&runtime, states)
}

fn states<T, S>(listener: Receiver<T>, show: S) -> impl Stream<Item = Value> + Send + 'static
where
    T: Clone + Send + 'static,
    S: Fn(T) -> Value + Send + 'static,
{
    stream::unfold((listener, show), async |(mut listener, show)| {
        let state = match listener.recv().await {
            Ok(request) => show(request),
            Err(RecvError::Lagged(lost)) => json!({ "lost": lost }),
            Err(RecvError::Closed) => return None,
        };
        Some((state, (listener, show)))
    })
}

/// The decision of the service. It names the request, as no signature covers the path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    id: String,
    approves: bool,
    by: String,
    #[serde(default)]
    roles: Vec<String>,
    note: Option<String>,
}

/// Decides a request as the service says.
pub(super) fn answer() -> Handler {
    post(
        async |State(runtime): Shared, Path(id): Path<String>, request: extract::Request| {
            respond(answered(&runtime, &id, request).await)
        },
    )
}

async fn answered(
    runtime: &Runtime,
    id: &str,
    request: extract::Request,
) -> Result<Value, Refused> {
    let webhook = runtime.webhook.as_ref().ok_or_else(|| {
        let message = "no answer is expected: the config has no `[approvals.webhook]`".to_owned();
        (StatusCode::NOT_FOUND, message)
    })?;
    let approvals = of(runtime)?;
    let unsigned = || {
        let refusals = &runtime.telemetry.refusals;
        // counts it, and logs some; which part is wrong is not for who sent it
        let _ = refusals.refuse(Reason::Signature.into(), None, None);
        let message = "expected an answer for this request that is signed with the secret of \
                       `[approvals.webhook]`";
        (StatusCode::UNAUTHORIZED, message.to_owned())
    };
    // who sends it is not known yet
    let (head, body) = request.into_parts();
    let body = timeout(BODY_TIMEOUT, to_bytes(body, MAX_ANSWER)).await;
    let late = |_| (StatusCode::REQUEST_TIMEOUT, "the body is late".to_owned());
    let body = body.map_err(late)?.map_err(|error| {
        let message = format!("expected a body of {MAX_ANSWER} bytes at most: {error}");
        (StatusCode::PAYLOAD_TOO_LARGE, message)
    })?;
    if !webhook.client.signer().verifies(&head.headers, &body) {
        return Err(unsigned());
    }
    let invalid = |what: &dyn Display| {
        let message = format!("expected {ANSWER}: {what}");
        (StatusCode::BAD_REQUEST, message)
    };
    let answer: Answer = object(&body).map_err(|error| invalid(&error))?;
    if answer.id != id {
        return Err(unsigned());
    }
    let is_name = (1..=MAX_NAME).contains(&answer.by.len());
    if !is_name || answer.by.trim() != answer.by || answer.by.chars().any(is_invisible) {
        return Err(invalid(&format_args!("found {:?}", answer.by)));
    }
    let note = checked(answer.note).map_err(|error| invalid(&error))?;
    let id = RequestId::new(id);
    let request = approvals.get(&id).await.map_err(|error| refused(&error))?;
    let asker = &request.asked.principal;
    // a service that names people as the gateway does is refused for the one that asks
    let by = match answer.by == asker.as_str() {
        true => asker.clone(),
        false => Principal::new(format!("webhook#{}", answer.by)),
    };
    let decision = Decision {
        approves: answer.approves,
        by,
        roles: answer.roles,
        channel: "webhook".to_owned(),
        note,
    };
    let request = settle(approvals, &id, decision).await?;
    Ok(whole(&request, runtime))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use tokio::sync::broadcast;

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_gets_the_number_of_events_that_it_lost() {
        let (send, listener) = broadcast::channel(2);
        for event in 1..=5 {
            send.send(event).unwrap();
        }
        drop(send);
        let found: Vec<_> = states(listener, |event| event.into()).collect().await;
        assert_eq!(found, [json!({"lost": 3}), json!(4), json!(5)]);
    }
}
