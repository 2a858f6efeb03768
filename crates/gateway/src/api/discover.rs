//! Listings of a server's tools: the last one, or one that is made now.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use callward::{Discovery, ServerId};

use super::{Shared, refuse};
use crate::http::json;

/// Answers with the outcome of the last listing.
pub(super) async fn last(State(runtime): Shared, Path(server): Path<String>) -> Response {
    match server.parse::<ServerId>() {
        Ok(id) => respond(&server, runtime.stack.discovery(&id).await),
        Err(_) => respond(&server, None),
    }
}

/// Lists the tools, and answers with the outcome: 200 also if that is an error of the server.
pub(super) async fn now(State(runtime): Shared, Path(server): Path<String>) -> Response {
    match server.parse::<ServerId>() {
        Ok(id) => respond(&server, runtime.stack.discover(&id).await),
        Err(_) => respond(&server, None),
    }
}

fn respond(server: &str, outcome: Option<Discovery>) -> Response {
    match outcome {
        Some(outcome) => json(StatusCode::OK, &outcome),
        None => refuse(StatusCode::NOT_FOUND, format!("no server {server:?}")),
    }
}
