//! The serving side.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use callward::{Caller, Delivery, ErrorKind, Principal, ServerId, ToolError};

use super::body::only_json;
use super::{breakers, cache, events, limits, servers};
use crate::http::{Operator, json};
use crate::view::{CallView, ErrorView, ExplainView, MissingView, ToolView};

/// Returns the routes, to be nested under `/api`.
pub(crate) fn routes(operator: Arc<Operator>) -> Router {
    Router::new()
        .route("/breakers", get(breakers::all).post(breakers::force))
        .route("/cache", get(cache::stats))
        .route("/cache/purge", post(cache::purge))
        .route("/limits", get(limits::all))
        .route("/missing", get(missing))
        .route("/routes/events", get(events::follow))
        .route("/servers", get(servers::all))
        .route("/servers/{server}/drain", post(servers::drain))
        .route("/servers/{server}/undrain", post(servers::undrain))
        .route("/servers/{server}/weight", post(servers::weigh))
        .route("/tools", get(tools))
        .route("/tools/{tool}", get(explain))
        .route("/tools/{tool}/call", post(call))
        .route("/tools/{tool}/explain", post(explain_call))
        .layer(middleware::from_fn(only_json))
        .with_state(operator)
}

async fn tools(State(operator): State<Arc<Operator>>) -> Response {
    operator.started.finished().await;
    json(StatusCode::OK, &ToolView::all(&operator.stack))
}

async fn missing(State(operator): State<Arc<Operator>>) -> Response {
    json(StatusCode::OK, &MissingView::all(&operator.stack))
}

async fn explain(State(operator): State<Arc<Operator>>, Path(tool): Path<String>) -> Response {
    operator.started.finished().await;
    match operator.stack.explain(&tool) {
        Ok(explanation) => json(StatusCode::OK, &ExplainView::of(&explanation)),
        Err(error) => refusal(&error),
    }
}

async fn explain_call(
    State(operator): State<Arc<Operator>>,
    Path(tool): Path<String>,
    arguments: Bytes,
) -> Response {
    operator.started.finished().await;
    let explained = check(&arguments)
        .and_then(|()| operator.stack.prepare(&tool, arguments))
        .and_then(|call| operator.stack.explain_prepared(&call.with_caller(caller())));
    match explained {
        Ok(explanation) => json(StatusCode::OK, &ExplainView::of(&explanation)),
        Err(error) => refusal(&error),
    }
}

async fn call(
    State(operator): State<Arc<Operator>>,
    Path(tool): Path<String>,
    RawQuery(query): RawQuery,
    arguments: Bytes,
) -> Response {
    // a text that is no object must never reach a server's pipe
    let pin = match check(&arguments).and_then(|()| pin(query.as_deref())) {
        Ok(pin) => pin,
        Err(error) => return refusal(&error),
    };
    operator.started.finished().await;
    let _counted = operator.calls.enter();
    let recorder = &operator.recorder;
    match CallView::make(&operator.stack, recorder, &tool, arguments, caller(), pin).await {
        Ok(view) => json(StatusCode::OK, &view),
        Err(error) => refusal(&error),
    }
}

/// Whoever asks here is known no better than a client of the endpoint, and shares its results.
fn caller() -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("anonymous")))
}

/// The parameter that names the one server a call is meant for.
pub(super) const SERVER: &str = "server";

/// Reads which server alone a call is meant for. What is not understood is refused: a call that was
/// meant for one server must not go to another.
fn pin(query: Option<&str>) -> Result<Option<ServerId>, ToolError> {
    let invalid = |text: String| ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text);
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(None);
    };
    match query.split_once('=') {
        Some((SERVER, id)) => match ServerId::new(id) {
            Ok(id) => Ok(Some(id)),
            Err(fault) => Err(invalid(format!("{SERVER}: {fault}"))),
        },
        _ => {
            let text = format!("expected nothing but `{SERVER}=ID` in the query, found {query:?}");
            Err(invalid(text))
        }
    }
}

fn check(arguments: &[u8]) -> Result<(), ToolError> {
    match serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(arguments) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = format!("the arguments are no JSON object: {error}");
            Err(ToolError::new(
                ErrorKind::InvalidCall,
                Delivery::NotSent,
                text,
            ))
        }
    }
}

fn refusal(error: &ToolError) -> Response {
    let status = match error.kind() {
        ErrorKind::UnknownTool => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    json(status, &ErrorView::of(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_that_is_not_understood_is_no_pin_to_anybody() {
        assert_eq!(pin(None).unwrap(), None);
        assert_eq!(pin(Some("")).unwrap(), None);
        let named = ServerId::new("a-1").unwrap();
        assert_eq!(pin(Some("server=a-1")).unwrap(), Some(named));
        for odd in ["server=", "server=a&b=c", "srever=a", "a", "server=%20"] {
            let error = pin(Some(odd)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidCall, "{odd}");
        }
    }
}
