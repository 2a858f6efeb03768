//! How the servers are, and taking them out of service.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::body::obey;
use crate::http::{Operator, json};
use crate::view::{NewWeight, Nothing, Order, ServerView};

/// Tells how each is.
pub(super) async fn all(State(operator): State<Arc<Operator>>) -> Response {
    json(StatusCode::OK, &ServerView::all(&operator.stack))
}

/// Gives one no new calls.
pub(super) async fn drain(
    State(operator): State<Arc<Operator>>,
    Path(server): Path<String>,
    body: Bytes,
) -> Response {
    plainly(&operator, Order::Drain, &server, &body)
}

/// Gives one calls again.
pub(super) async fn undrain(
    State(operator): State<Arc<Operator>>,
    Path(server): Path<String>,
    body: Bytes,
) -> Response {
    plainly(&operator, Order::Undrain, &server, &body)
}

/// Lets one weigh what the body says.
pub(super) async fn weigh(
    State(operator): State<Arc<Operator>>,
    Path(server): Path<String>,
    body: Bytes,
) -> Response {
    let expected = "an object with `weight`, a whole number from 0 to 100";
    obey(&body, expected, |new: NewWeight| {
        Order::Weigh(new.weight).act(&operator.stack, &server)
    })
}

/// Carries out an order that the path says all of.
fn plainly(operator: &Operator, order: Order, server: &str, body: &[u8]) -> Response {
    let body = if body.is_empty() { b"{}" } else { body };
    obey(body, "no body, or `{}`", |Nothing {}| {
        order.act(&operator.stack, server)
    })
}
