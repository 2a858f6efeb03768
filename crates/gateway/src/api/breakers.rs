//! How the breakers are, and holding them open or closed.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::body::obey;
use crate::http::{Operator, json};
use crate::view::{BreakerView, Force};

/// Tells the state of each.
pub(super) async fn all(State(operator): State<Arc<Operator>>) -> Response {
    json(StatusCode::OK, &BreakerView::all(&operator.stack))
}

/// Does with one what the body says.
pub(super) async fn force(State(operator): State<Arc<Operator>>, body: Bytes) -> Response {
    let expected = "an object with `action` (open, close or release), `server`, and at most one of \
                    `tool` and `discovery`";
    obey(&body, expected, |what: Force| what.act(&operator.stack))
}
