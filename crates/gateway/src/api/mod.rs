//! The requests of the command line to a running gateway, over HTTP on the admin listener.
//!
//! What a function of the stack returns is the JSON of its route, of `--json`, and of the table
//! that a command shows. To add one: a function in `status`, its route, and a command.

mod approvals;
mod call;
mod channels;
mod client;
mod discover;
mod events;
mod grants;
mod review;
mod status;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post};
use bytes::Bytes;
use callward::core::{self, Credential, CredentialKind};
use callward::registry::{Entry, Query};
use callward::{Caller, Delivery, ErrorKind, Principal, ServerId, Stack, ToolCall, ToolError};
use callward_mcp::wire::object;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::form_urlencoded;

use crate::admin::access::{Access, Role, local, principal};
use crate::http::{json, scrape};
use crate::runtime::Runtime;
use crate::{readiness, relay, view};

pub(crate) use approvals::{left, whole};
pub(crate) use client::{Remote, find, gateway};

/// Returns the routes of the admin listener. Each states the role that it needs. What changes
/// something is a POST or a DELETE, which a page of another site cannot send without a preflight.
pub(crate) fn routes(runtime: Arc<Runtime>, access: &Arc<Access>) -> Router {
    use Role::{Anyone, Operator, Viewer};
    let metrics = get(async |State(runtime): Shared| scrape(&runtime));
    let ready = get(
        async |State(runtime): Shared, viewer: Option<Extension<Arc<Caller>>>| {
            readiness::respond(&runtime, Some(viewer.is_some()))
        },
    );
    let force = order(status::FORCE, status::force);
    let missing = read(|stack| view::missing(stack).into());
    let drain = order(status::NOTHING, status::drain);
    let undrain = order(status::NOTHING, status::undrain);
    let weigh = order(status::WEIGHT, status::weigh);
    let purge = order(status::PURGE, status::purge);
    let routes = [
        ("/metrics", Anyone, get(metrics)),
        ("/readyz", Anyone, get(ready)),
        ("/api/approvals", Viewer, get(approvals::list)),
        ("/api/approvals/approve", Operator, approvals::decide(true)),
        ("/api/approvals/deny", Operator, approvals::decide(false)),
        ("/api/approvals/digest", Viewer, get(grants::digest)),
        ("/api/approvals/grants", Viewer, get(grants::list)),
        ("/api/approvals/grants", Operator, post(grants::give)),
        (
            "/api/approvals/grants/{id}",
            Operator,
            delete(grants::revoke),
        ),
        ("/api/approvals/events", Viewer, get(channels::follow)),
        ("/api/approvals/{id}", Viewer, get(approvals::show)),
        // its signature is the credential
        ("/api/approvals/{id}/answer", Anyone, channels::answer()),
        (
            "/api/approvals/{id}/approve",
            Operator,
            approvals::decide(true),
        ),
        (
            "/api/approvals/{id}/deny",
            Operator,
            approvals::decide(false),
        ),
        ("/api/breakers", Viewer, read(status::breakers)),
        ("/api/breakers", Operator, force),
        ("/api/cache", Viewer, read(status::cache)),
        ("/api/cache/purge", Operator, purge),
        ("/api/limits", Viewer, read(status::limits)),
        ("/api/missing", Viewer, missing),
        ("/api/requests", Operator, post(make_request)),
        ("/api/review", Viewer, get(review::list)),
        ("/api/review", Operator, post(review::decide)),
        ("/api/routes/events", Viewer, get(events::follow)),
        ("/api/servers", Viewer, read(status::servers)),
        (
            "/api/servers/{server}/discover",
            Viewer,
            get(discover::last),
        ),
        (
            "/api/servers/{server}/discover",
            Operator,
            post(discover::now),
        ),
        ("/api/servers/{server}/drain", Operator, drain),
        ("/api/servers/{server}/undrain", Operator, undrain),
        ("/api/servers/{server}/weight", Operator, weigh),
        (
            "/api/statistics",
            Viewer,
            read(|stack| json!(stack.statistics())),
        ),
        ("/api/tools", Viewer, get(tools)),
        ("/api/tools/{tool}", Viewer, get(explain)),
        ("/api/tools/{tool}/call", Operator, post(make_call)),
        ("/api/tools/{tool}/explain", Viewer, post(explain)),
    ];
    let mut router = Router::new();
    for (path, role, handler) in routes {
        let access = access.clone();
        router = router.route(
            path,
            handler.route_layer(from_fn(move |request, next| {
                access.clone().admit(role, request, next)
            })),
        );
    }
    router.layer(from_fn(only_json)).with_state(runtime)
}

type Handler = MethodRouter<Arc<Runtime>>;
type Shared = State<Arc<Runtime>>;

/// Answers with a view of the stack.
fn read(view: fn(&Stack) -> Value) -> Handler {
    get(async move |State(runtime): Shared| json(StatusCode::OK, &view(&runtime.stack)))
}

/// Carries out what the body says, of the server of the path if there is one. An order that cannot
/// be carried out gets 404: it names something that is not there.
fn order<T: DeserializeOwned + 'static>(
    expected: &'static str,
    act: fn(&Stack, &str, &T) -> Result<Value, String>,
) -> Handler {
    post(
        async move |State(runtime): Shared, server: Option<Path<String>>, body: Bytes| {
            let server = server.map_or_else(String::new, |Path(server)| server);
            let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
            let order = serde_json::from_slice(body);
            match order.map(|order| act(&runtime.stack, &server, &order)) {
                Ok(Ok(done)) => json(StatusCode::OK, &done),
                Ok(Err(message)) => refuse(StatusCode::NOT_FOUND, message),
                Err(error) => {
                    let message = format!("expected {expected}: {error}");
                    refuse(StatusCode::BAD_REQUEST, message)
                }
            }
        },
    )
}

fn invalid(message: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, message)
}

fn refuse(status: StatusCode, message: String) -> Response {
    json(status, &view::refusal(&invalid(message)))
}

/// Refuses a POST whose content type is not JSON: a page of any site may send such a request
/// without a preflight.
async fn only_json(request: Request, next: Next) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if request.method() == Method::POST && !kind.eq_ignore_ascii_case("application/json") {
        let message = "expected `content-type: application/json`".to_owned();
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    next.run(request).await
}

/// The header with the number of tools that match, of which the answer may be one page.
const TOTAL: &str = "x-total-count";

/// Lists the tools that the parameters ask for, all without one.
async fn tools(State(runtime): Shared, RawQuery(query): RawQuery) -> Response {
    runtime.started.finished().await;
    let stack = &runtime.stack;
    let mut asked = Query::default();
    for (field, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if let Err(error) = asked.set(&field, &value) {
            return refuse(StatusCode::BAD_REQUEST, error.to_string());
        }
    }
    let started = Instant::now();
    let found = stack.search(&asked, |_| true);
    let took = started.elapsed().as_secs_f64() * 1e3;
    let mut response = json(StatusCode::OK, &view::tools(stack, &found.tools));
    let timing = format!("search;dur={took:.3}");
    for (name, value) in [(TOTAL, found.total.to_string()), ("server-timing", timing)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Explains a tool, or with POST one call of it.
async fn explain(
    State(runtime): Shared,
    Path(tool): Path<String>,
    RawQuery(query): RawQuery,
    method: Method,
    arguments: Bytes,
) -> Response {
    runtime.started.finished().await;
    let (stack, caller) = (&runtime.stack, query.as_deref());
    let caller = caller.map(|query| self::caller(query, stack)).transpose();
    let explained = caller.and_then(|caller| match caller {
        caller if method == Method::POST => {
            check(&arguments)?;
            let caller = caller.unwrap_or_else(|| operator(stack));
            let named = |entry: &&Arc<Entry>| entry.client_name() == tool;
            let call = match stack.catalogue().methods().iter().find(named) {
                Some(method) => stack.prepare_method(method.tool().clone(), arguments),
                None => stack.prepare(&tool, arguments)?,
            };
            stack.explain_prepared(&call.with_caller(caller))
        }
        Some(caller) => stack.explain_as(&tool, &caller),
        None => stack.explain(&tool),
    });
    let layer = stack.approval_layer();
    match explained {
        Ok(explanation) => {
            let ask = explanation.call.as_ref().and_then(|call| {
                let (applied, read) = (call.applied(), call.arguments());
                let policy = stack.policy()?;
                policy.decide(call.caller(), call.tool(), applied, read).ask
            });
            let mut view = view::explanation(&explanation, layer, ask.as_deref());
            grants::explain(&runtime, &explanation, &mut view).await;
            json(StatusCode::OK, &view)
        }
        Err(error) => refusal(&error),
    }
}

/// The parameters that name the caller of a call that is explained.
pub(crate) const PRINCIPAL: &str = "as";
pub(crate) const ROLE: &str = "role";
pub(crate) const SCOPE: &str = "scope";

/// Reads for whom a call is explained. Default: an operator.
fn caller(query: &str, stack: &Stack) -> Result<Arc<Caller>, ToolError> {
    let mut principal = None;
    let mut credential = Credential::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = value.into_owned();
        match &*name {
            PRINCIPAL => principal = Some(Principal::new(value)),
            ROLE => drop(credential.roles.insert(value)),
            SCOPE => drop(credential.scopes.get_or_insert_default().insert(value)),
            _ => return Err(invalid(format!("no parameter {name:?}"))),
        }
    }
    let named = |principal| Arc::new(Caller::new(principal).with_credential(credential));
    Ok(principal.map_or_else(|| operator(stack), named))
}

/// Returns the operator of this machine.
fn operator(stack: &Stack) -> Arc<Caller> {
    local(CredentialKind::None, principal(stack))
}

/// Answers a request of a method other than `tools/call`, with its raw result.
async fn make_request(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    body: Bytes,
) -> Response {
    #[derive(Deserialize)]
    struct Asked {
        method: core::Method,
        params: Box<RawValue>,
    }
    let asked = serde_json::from_slice::<Asked>(&body).map_err(|error| error.to_string());
    let asked = asked.and_then(|asked| match asked.method {
        core::Method::CallTool => Err("`tools/call` has a route of its own".to_owned()),
        method if method.is_of_task() => Err("no call made here is a task".to_owned()),
        _ => {
            let params = object::remove_member(asked.params.get().as_bytes(), "_meta");
            let params = params.map_err(|error| error.to_string());
            params.map(|params| (asked.method, params))
        }
    });
    let (method, params) = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let message = format!("expected {{\"method\": METHOD, \"params\": {{..}}}}: {error}");
            return refuse(StatusCode::BAD_REQUEST, message);
        }
    };
    runtime.started.finished().await;
    if let Some(stopping) = stopping(&runtime) {
        return stopping;
    }
    let name = method.named_by().and_then(|name| {
        let name = object::get_member(&params, name).ok()??;
        serde_json::from_slice::<String>(name).ok()
    });
    let request = relay::Request {
        pin: None,
        stack: &runtime.stack,
        caller: &caller,
        method,
        name: name.as_deref().unwrap_or_default(),
        params: &params,
        is_modern: false,
    };
    let _counted = runtime.stop.calls.token();
    let run = |call: ToolCall| runtime.stack.run(call.with_caller(caller.clone()));
    let refused = |error| {
        let name = format!("{method} {}", name.as_deref().unwrap_or_default());
        runtime.stack.note_refused(&name, &caller, None, &error);
        error
    };
    match request.answer(run, refused).await {
        Ok((_, output)) => {
            let result: Option<&RawValue> = serde_json::from_slice(output.body()).ok();
            json(StatusCode::OK, &result)
        }
        Err(error) => refusal(&error),
    }
}

async fn make_call(
    State(runtime): Shared,
    Extension(caller): Extension<Arc<Caller>>,
    Path(tool): Path<String>,
    RawQuery(query): RawQuery,
    arguments: Bytes,
) -> Response {
    // only JSON objects may reach a server's pipe
    let pin = match check(&arguments).and_then(|()| pin(query.as_deref())) {
        Ok(pin) => pin,
        Err(error) => return refusal(&error),
    };
    runtime.started.finished().await;
    if let Some(stopping) = stopping(&runtime) {
        return stopping;
    }
    let _counted = runtime.stop.calls.token();
    match call::make(&runtime, caller, &tool, arguments, pin).await {
        Ok(outcome) => json(StatusCode::OK, &outcome),
        Err(error) => refusal(&error),
    }
}

/// Refuses a request if the gateway stops.
fn stopping(runtime: &Runtime) -> Option<Response> {
    runtime.stop.closing.is_cancelled().then(|| {
        let why = "the gateway is stopping";
        let error = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, why);
        json(StatusCode::SERVICE_UNAVAILABLE, &view::refusal(&error))
    })
}

/// The parameter that names the one server a call is meant for.
const SERVER: &str = "server";

/// Reads the only server that a call is meant for. An unknown parameter is refused: a call that was
/// meant for one server must not go to another.
fn pin(query: Option<&str>) -> Result<Option<ServerId>, ToolError> {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(None);
    };
    match query.split_once('=') {
        Some((SERVER, id)) => ServerId::new(id)
            .map(Some)
            .map_err(|fault| invalid(format!("{SERVER}: {fault}"))),
        _ => Err(invalid(format!(
            "expected nothing but `{SERVER}=ID` in the query, found {query:?}"
        ))),
    }
}

fn check(arguments: &[u8]) -> Result<(), ToolError> {
    serde_json::from_slice::<serde_json::Map<_, Value>>(arguments)
        .map(drop)
        .map_err(|error| invalid(format!("the arguments are not a JSON object: {error}")))
}

fn refusal(error: &ToolError) -> Response {
    let status = match error.kind {
        ErrorKind::UnknownTool => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    json(status, &view::refusal(error))
}
