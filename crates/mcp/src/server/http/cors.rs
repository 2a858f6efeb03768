//! Cross-origin requests (CORS): the headers that let a page of an allowed origin use the endpoint.
//! Pages of other origins get none of them.

use std::iter;

use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::wire::header::PARAM_PREFIX;

/// The methods of the endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// The request headers that clients of either era send and that browsers ask about.
const REQUEST_HEADERS: &str = "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, \
                               MCP-Protocol-Version, Mcp-Method, Mcp-Name, Idempotency-Key, \
                               traceparent, tracestate, baggage";

/// The response headers that a page may read beside those that browsers always show.
const RESPONSE_HEADERS: &str =
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";

/// How long a browser may keep the answer to a preflight, in seconds.
const MAX_AGE: &str = "600";

/// The most headers that mirror arguments (`Mcp-Param-*`) that one preflight may ask for.
const MOST_PARAM_HEADERS: usize = 64;

/// Lets a page of this origin read the response. Without an origin nothing is added.
pub(super) fn expose(mut response: Response, origin: Option<HeaderValue>) -> Response {
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(RESPONSE_HEADERS);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// Answers `OPTIONS`: a preflight of an allowed origin, or a question that no page asks.
pub(super) fn preflight(origin: Option<HeaderValue>, asked: &HeaderMap) -> Response {
    let mut response = IntoResponse::into_response(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let Some(origin) = origin else {
        let methods = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
        headers.insert(ALLOW, methods);
        return response;
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, request_headers(asked));
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        (VARY, "Origin, Access-Control-Request-Headers"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the headers that may be sent. Those that mirror arguments are named by the tools, so
/// they are taken from the question.
fn request_headers(asked: &HeaderMap) -> HeaderValue {
    let mirrors = |name: &&str| {
        let prefix = name.get(..PARAM_PREFIX.len());
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PARAM_PREFIX))
    };
    let asked = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let asked = asked.filter_map(|value| value.to_str().ok());
    let asked = asked.flat_map(|value| value.split(',')).map(str::trim);
    let asked = asked.filter(mirrors).take(MOST_PARAM_HEADERS);
    let allowed: Vec<_> = iter::once(REQUEST_HEADERS).chain(asked).collect();
    HeaderValue::try_from(allowed.join(", "))
        .unwrap_or_else(|_| HeaderValue::from_static(REQUEST_HEADERS))
}
