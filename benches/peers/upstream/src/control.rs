//! What a measurement asks of the server, beside its tools.

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use peers_upstream::State;
use serde::de::DeserializeOwned;

use crate::{Body, text};

pub(crate) async fn answer(request: Request<Incoming>, state: &State) -> Response<Body> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/control/counts") => match serde_json::to_vec(&state.counts()) {
            Ok(counts) => text(StatusCode::OK, counts),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        (&Method::POST, "/control/reset") => {
            state.reset();
            text(StatusCode::OK, "")
        }
        // `{"flaky_set": {"fault": "drop", "share": 0.3, "seed": 1}}`: all rules there are from now
        // on
        (&Method::POST, "/control/faults") => take(request, |rules| state.faults.set(rules)).await,
        // `{"KEY": "VALUE"}`: items that change without any tool
        (&Method::POST, "/control/items") => take(request, |items| state.change(items)).await,
        _ => text(
            StatusCode::NOT_FOUND,
            "GET counts, POST reset, POST faults, POST items",
        ),
    }
}

/// Hands over what the body says.
async fn take<T: DeserializeOwned>(
    request: Request<Incoming>,
    with: impl FnOnce(T),
) -> Response<Body> {
    let body = request.into_body().collect().await;
    let parsed = body
        .map_err(|error| error.to_string())
        .and_then(|body| serde_json::from_slice(&body.to_bytes()).map_err(|e| e.to_string()));
    match parsed {
        Ok(parsed) => {
            with(parsed);
            text(StatusCode::OK, "")
        }
        Err(error) => text(StatusCode::BAD_REQUEST, error),
    }
}
