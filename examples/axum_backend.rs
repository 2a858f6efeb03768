//! An agent backend that embeds the stack: every user is a principal, so no user sees answers for
//! another. `cargo run --example axum_backend` asks it a few questions;
//! `cargo run --example axum_backend -- 127.0.0.1:8080` listens.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use callward::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, Stack, ToolCall, ToolError, ToolOutput,
    ToolSpec, Tools,
};
use tower::ServiceExt;

/// A tool that answers each caller about that caller.
fn mail() -> Result<Tools, Box<dyn Error>> {
    let inbox = tower::service_fn(|call: ToolCall| async move {
        let who = &call.caller().principal;
        Ok::<_, ToolError>(ToolOutput::text(format!("2 new messages for {who}")))
    });
    let spec = ToolSpec::new("get_inbox").description("Returns the caller's new messages");
    Ok(Tools::new("mail")?.service(spec, inbox)?)
}

/// `POST /tools/{name}` with the arguments as JSON calls a tool for the owner of the token.
async fn call_tool(
    State(stack): State<Stack>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    arguments: Bytes,
) -> Response {
    let Some(user) = user_of(&headers) else {
        return (StatusCode::UNAUTHORIZED, "who are you?\n").into_response();
    };
    let caller = Arc::new(Caller::new(Principal::new(user)));
    let record = Arc::new(CallRecord::new());
    let reported = match stack.prepare(&tool, arguments) {
        Ok(call) => {
            let call = call.with_caller(caller).with_record(record.clone());
            stack.run(call).await
        }
        Err(error) => Err(error),
    };
    let cache = [("x-cache", record.facts().cache.as_str())];
    match reported {
        Ok(output) => (cache, output.body().clone()).into_response(),
        Err(error) => (status(&error), cache, format!("{error}\n")).into_response(),
    }
}

/// Stands for a real look-up of sessions.
fn user_of(headers: &HeaderMap) -> Option<&'static str> {
    match headers.get("authorization")?.to_str().ok()? {
        "Bearer ada-token" => Some("ada"),
        "Bearer bob-token" => Some("bob"),
        _ => None,
    }
}

/// What went wrong, for HTTP. A call that may have run is not a 503: clients repeat those.
fn status(error: &ToolError) -> StatusCode {
    match (error.kind, error.delivery) {
        (ErrorKind::UnknownTool, _) => StatusCode::NOT_FOUND,
        (ErrorKind::InvalidCall, _) => StatusCode::BAD_REQUEST,
        (_, Delivery::NotSent) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let stack = Stack::builder().server(mail()?).build().await?;
    let routes = Router::new()
        .route("/tools/{name}", post(call_tool))
        .with_state(stack);
    if let Some(address) = std::env::args().nth(1) {
        let listener = tokio::net::TcpListener::bind(address).await?;
        println!("listening on http://{}", listener.local_addr()?);
        return Ok(axum::serve(listener, routes).await?);
    }
    for (token, tool) in [
        ("ada-token", "mail.get_inbox"),
        ("ada-token", "mail.get_inbox"),
        ("bob-token", "mail.get_inbox"),
        ("bob-token", "mail.send_all"),
        ("no-token", "mail.get_inbox"),
    ] {
        let request = Request::post(format!("/tools/{tool}"))
            .header("authorization", format!("Bearer {token}"))
            .body(Body::from("{}"))?;
        let response = routes.clone().oneshot(request).await?;
        let status = response.status().as_u16();
        let cache = response.headers().get("x-cache").cloned();
        let cache = cache
            .as_ref()
            .and_then(|value| value.to_str().ok())
            .unwrap_or("-");
        let body = to_bytes(response.into_body(), 64 * 1024).await?;
        let body = String::from_utf8_lossy(&body);
        println!(
            "{token:9}  {tool:15} {status} {cache:7} {}",
            body.trim_end()
        );
    }
    Ok(())
}
