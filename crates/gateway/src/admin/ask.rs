//! The page that asks a person for a secret, without script: it may not travel through the client.
//!
//! Who has the URL can answer, once and while the question is open. With `[auth]` the page asks for
//! a key or token too, which must be of the principal of the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, CONTENT_TYPE, HOST, ORIGIN};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use callward::approval::questions::{Answer, Pending, QuestionKind, Questions, Secret};
use callward::core::{is_invisible, written_out};
use serde_json::Value;
use tokio::time::timeout;
use url::form_urlencoded;

use super::SEC_FETCH_SITE;
use super::access::{ANONYMOUS, Access};

/// The path of the page, which the token of a question follows.
pub(crate) const PATH: &str = "/ask/";

/// The longest body, in bytes.
const MAX_BODY: usize = 64 << 10;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

type Page = State<(Questions, Arc<Access>)>;

/// Returns the routes of the page.
pub(super) fn routes(questions: Questions, access: Arc<Access>) -> Router {
    let routes = Router::new().route("/ask/{token}", get(show).post(take));
    routes.with_state((questions, access))
}

/// Returns why a request for the page is refused: pages of other sites may only link to it. From
/// one of the page itself, what says so is removed: other paths refuse it.
pub(super) fn refused(request: &mut Request) -> Option<String> {
    if !request.uri().path().starts_with(PATH) {
        return None;
    }
    let is_read = request.method().is_safe();
    let headers = request.headers_mut();
    let has = |name, value: &str| headers.get_all::<&str>(name).iter().all(|it| it == value);
    let is_ours = if is_read {
        has("origin", "") && has("sec-fetch-mode", "navigate") && has("sec-fetch-dest", "document")
    } else {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let own = has("origin", &format!("http://{}", host.unwrap_or_default()));
        // what browsers send for a page with `Referrer-Policy: no-referrer`
        let is_marked = has("origin", "null") && headers.contains_key(SEC_FETCH_SITE);
        has("sec-fetch-site", "same-origin") && (own || is_marked)
    };
    if !is_ours {
        return Some("web pages may only link here".into());
    }
    headers.remove(SEC_FETCH_SITE);
    headers.remove(ORIGIN);
    None
}

async fn show(State((questions, _)): Page, Path(token): Path<String>) -> Response {
    let question = find(&questions, &token);
    question.map_or_else(ended, |question| form(StatusCode::OK, &question, ""))
}

/// Finds the question for a secret whose page has this token.
fn find(questions: &Questions, token: &str) -> Option<Arc<Pending>> {
    let question = questions.at(token);
    question.filter(|question| question.kind == QuestionKind::Secret)
}

async fn take(State(state): Page, Path(token): Path<String>, request: Request) -> Response {
    let (questions, access) = state;
    let Some(question) = find(&questions, &token) else {
        return ended();
    };
    let again = |status, why: &str| form(status, &question, why);
    let body = timeout(BODY_TIMEOUT, to_bytes(request.into_body(), MAX_BODY));
    let Ok(Ok(body)) = body.await else {
        return again(StatusCode::BAD_REQUEST, "It is too long, or took too long.");
    };
    let mut fields: BTreeMap<_, _> = form_urlencoded::parse(&body).into_owned().collect();
    let key = fields.remove("key").unwrap_or_default();
    let is_asker = !needs_key(&question) || access.is_of(&key, &question.principal).await;
    let answer = fields.remove("answer").filter(|_| is_asker);
    // what never fits counts as an answer that does not
    let answer = answer.map_or(Answer::Value(Value::Null), |answer| {
        Answer::Secret(Secret::new(answer))
    });
    match questions.submit(&token, answer) {
        Ok(()) => page(StatusCode::OK, "The answer is taken. Close this page.", ""),
        Err(_) if find(&questions, &token).is_none() => ended(),
        Err(_) if !is_asker => again(StatusCode::FORBIDDEN, "The key is not of who asked."),
        Err(error) => again(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn needs_key(question: &Pending) -> bool {
    question.principal.as_str() != ANONYMOUS
}

/// Asks, after what was wrong with the last answer.
fn form(status: StatusCode, question: &Pending, wrong: &str) -> Response {
    let key = if needs_key(question) { KEY } else { "" };
    let form = format!(
        "<form method=post><label>Answer<input type=password name=answer \
         required autofocus autocomplete=off></label>{key}<button>Send</button></form>"
    );
    let message = format!("{}\n\n{wrong}", question.message);
    page(status, message.trim_end(), &form)
}

/// Answers for a token without an open question, whether it ever had one or not.
fn ended() -> Response {
    let text = "This question has ended, or was answered.";
    page(StatusCode::NOT_FOUND, text, "")
}

const KEY: &str = "<label>Your key or token for this gateway<input type=password name=key required \
                   autocomplete=off></label>";
const STYLE: &str = "body{font:1rem/1.5 sans-serif;max-width:40rem;margin:3rem auto}\
    p{white-space:pre-wrap;overflow-wrap:anywhere}input,button{display:block;margin:0 0 1rem}";
/// With the digest of the style.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors \
    'none'; style-src 'sha256-Be9QH4cgC1ACml1q8aQgXOBSLPXi6ZU7518wrKxONL4='";

/// Shows a text, and a form if there is one.
fn page(status: StatusCode, text: &str, form: &str) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let text = escaped(text);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Callward asks</title>\
         <style>{STYLE}</style><p>{text}</p>{form}</html>"
    );
    (status, headers, html).into_response()
}

/// Writes a text as HTML, with what is invisible written out.
fn escaped(text: &str) -> String {
    let text = written_out(text, |c| is_invisible(c) && c != '\n');
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\'', "&#39;")
}

#[cfg(test)]
mod tests;
