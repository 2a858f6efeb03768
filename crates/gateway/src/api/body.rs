//! What an operator's order says, read and carried out.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::json;
use crate::view::ErrorView;

/// Refuses a POST whose content type is not JSON: a page of any site may send such a request without
/// a preflight.
pub(super) async fn only_json(request: Request, next: Next) -> Response {
    if request.method() == Method::POST && !is_json(request.headers()) {
        let text = "expected `content-type: application/json`";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    }
    next.run(request).await
}

/// Reads the body as `expected` says, and does what it asks for. What cannot be done is told with 404:
/// the body names something that is not there.
pub(super) fn obey<T: DeserializeOwned, R: Serialize>(
    body: &[u8],
    expected: &str,
    act: impl FnOnce(T) -> Result<R, String>,
) -> Response {
    match serde_json::from_slice::<T>(body) {
        Ok(what) => match act(what) {
            Ok(done) => json(StatusCode::OK, &done),
            Err(message) => refuse(StatusCode::NOT_FOUND, &message),
        },
        Err(error) => {
            let text = format!("expected {expected}: {error}");
            refuse(StatusCode::BAD_REQUEST, &text)
        }
    }
}

pub(super) fn refuse(status: StatusCode, message: &str) -> Response {
    json(status, &ErrorView::not_sent(message))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
    else {
        return false;
    };
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind);
    kind.trim().eq_ignore_ascii_case("application/json")
}
