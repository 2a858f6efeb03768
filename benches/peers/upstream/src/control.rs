//! What a measurement asks of the server, beside its tools.

use std::collections::HashMap;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use peers_upstream::{Rule, State};

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
        (&Method::POST, "/control/faults") => match rules(request).await {
            Ok(rules) => {
                state.faults.set(rules);
                text(StatusCode::OK, "")
            }
            Err(error) => text(StatusCode::BAD_REQUEST, error),
        },
        _ => text(StatusCode::NOT_FOUND, "GET counts, POST reset, POST faults"),
    }
}

/// `{"flaky_set": {"fault": "drop", "share": 0.3, "seed": 1}}`: all rules there are from now on.
async fn rules(request: Request<Incoming>) -> Result<HashMap<String, Rule>, String> {
    let body = request.into_body().collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}
