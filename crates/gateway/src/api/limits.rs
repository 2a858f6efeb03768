//! What the limits let through, hold back and refuse.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::http::{Operator, json};
use crate::view::LimitsReport;

/// Tells all of it.
pub(super) async fn all(State(operator): State<Arc<Operator>>) -> Response {
    json(StatusCode::OK, &LimitsReport::of(&operator.stack))
}
