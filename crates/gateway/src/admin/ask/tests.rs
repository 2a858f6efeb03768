//! The page, its guard and its verdicts.

use axum::body::Body;
use axum::http::HeaderValue;
use base64::Engine as _;
use bytes::Bytes;
use callward::approval::questions::{Question, QuestionError};
use callward::core::{
    BoxFuture, CallClient, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal,
};
use callward::{Caller, Principal, Tool, ToolCall};
use futures_util::stream;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::*;
use crate::admin::access::tests::of_tokens;

#[test]
fn texts_are_shown_as_they_are() {
    for (text, html) in [
        ("a\nb", "a\nb"),
        (
            "<script>alert(1)</script>",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
        ),
        ("\"'&amp;", "&quot;&#39;&amp;amp;"),
        ("\u{202e}\u{200b}\r\u{7}", "\\u{202e}\\u{200b}\\r\\u{7}"),
        ("\u{fc}\u{20ac}", "\u{fc}\u{20ac}"),
    ] {
        assert_eq!(escaped(text), html, "{text:?}");
    }
}

#[test]
fn the_policy_allows_the_style_of_the_page_alone() {
    let digest = ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes());
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    let style = format!("style-src 'sha256-{digest}'");
    assert!(POLICY.contains(&style), "{style}");
}

#[test]
fn pages_of_other_sites_may_link_here_and_nothing_else() {
    let own = ("origin", "http://127.0.0.1:1");
    let null = ("origin", "null");
    let site = |site| ("sec-fetch-site", site);
    let navigates = ("sec-fetch-mode", "navigate");
    let dest = |dest| ("sec-fetch-dest", dest);
    for (method, headers, is_allowed) in [
        ("GET", vec![], true),
        (
            "GET",
            vec![site("cross-site"), navigates, dest("document")],
            true,
        ),
        ("GET", vec![site("none"), navigates, dest("document")], true),
        (
            "GET",
            vec![site("cross-site"), navigates, dest("iframe")],
            false,
        ),
        (
            "GET",
            vec![site("same-origin"), ("sec-fetch-mode", "cors")],
            false,
        ),
        (
            "HEAD",
            vec![site("cross-site"), ("sec-fetch-mode", "no-cors")],
            false,
        ),
        ("GET", vec![own], false),
        ("POST", vec![], true),
        ("POST", vec![own], true),
        ("POST", vec![own, site("same-origin")], true),
        ("POST", vec![null, site("same-origin")], true),
        ("POST", vec![null], false),
        ("POST", vec![null, site("cross-site")], false),
        ("POST", vec![own, site("cross-site")], false),
        ("POST", vec![own, site("same-site")], false),
        ("POST", vec![own, site("none")], false),
        ("POST", vec![("origin", "http://127.0.0.1:2")], false),
        ("POST", vec![("origin", "https://127.0.0.1:1")], false),
        ("POST", vec![own, null, site("same-origin")], false),
    ] {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "/ask/0".parse().unwrap();
        *request.method_mut() = method.parse().unwrap();
        let all = headers.iter().chain(&[("host", "127.0.0.1:1")]);
        for (name, value) in all {
            request
                .headers_mut()
                .append(*name, HeaderValue::from_static(value));
        }
        let is_ours = refused(&mut request).is_none();
        assert_eq!(is_ours, is_allowed, "{method} {headers:?}");
    }
}

/// A client that opens the URLs it is asked to, and keeps them.
#[derive(Default)]
struct Opens(Mutex<String>);

impl ClientPeer for Opens {
    fn ask(
        &self,
        _: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        let params: Value = serde_json::from_slice(&params).unwrap();
        params["url"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.0.lock());
        Box::pin(async { Ok(Bytes::from_static(br#"{"action": "accept"}"#)) })
    }
}

type Waits = JoinHandle<Result<Answer, QuestionError>>;

/// Asks this principal; returns the path of the page.
async fn ask(questions: &Questions, asked: &str, question: Question) -> (String, Waits) {
    let client = Arc::new(Opens::default());
    let caller = Arc::new(Caller::new(Principal::new(asked)));
    let tool = Tool::read_only("read").unwrap();
    let mut call = ToolCall::new(tool, "{}").with_caller(caller);
    let context = call.context_mut();
    context.client = Some(CallClient::new(client.clone(), false));
    context.capabilities = ClientCapabilities::parse(br#"{"elicitation": {"url": {}}}"#);
    let questions = questions.clone();
    let waits = tokio::spawn(async move { questions.to(&call).ask(question).await });
    while client.0.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let path = client.0.lock().clone();
    (path, waits)
}

async fn sent(page: &Router, path: &str, body: Option<Body>) -> (u16, String) {
    let request = Request::builder().uri(path);
    let request = match body {
        Some(body) => request
            .method("POST")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body),
        None => request.body(Body::empty()),
    };
    let answer = page.clone().oneshot(request.unwrap()).await.unwrap();
    let (head, body) = answer.into_parts();
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(head.headers[name], value);
    }
    let body = to_bytes(body, 1 << 20).await.unwrap();
    (
        head.status.as_u16(),
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

/// What the form sends: an answer, and a key if it is not empty.
fn filled(answer: &str, key: &str) -> Option<Body> {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.append_pair("answer", answer);
    if !key.is_empty() {
        body.append_pair("key", key);
    }
    Some(Body::from(body.finish()))
}

#[tokio::test(start_paused = true)]
async fn each_answer_gets_its_verdict() {
    let secret = || Question::secret("<key>?").with("minLength", 8);
    let long = "a".repeat(MAX_BODY);
    let post = |answer: &str, key: &str, status, shows| (filled(answer, key), status, shows);
    let rows = [
        (
            ANONYMOUS,
            secret(),
            "h&nter 2+2=4\u{fc}",
            vec![
                (None, 200, "&lt;key&gt;?"),
                post(&long, "", 400, "too long"),
                (Some(Body::from("secret=hunter22")), 400, "must be a secret"),
                (
                    Some(Body::from_stream(stream::pending::<
                        Result<Bytes, axum::Error>,
                    >())),
                    400,
                    "took",
                ),
                post("hunter2", "", 400, "keep to `minLength`"),
                post("h&nter 2+2=4\u{fc}", "", 200, "is taken"),
                post("hunter22", "", 404, "has ended"),
                (None, 404, "has ended"),
            ],
        ),
        (
            "ada",
            secret(),
            "hunter22",
            vec![
                (None, 200, "name=key"),
                post("hunter22", "", 403, "not of who asked"),
                post("hunter22", "eve", 403, "not of who asked"),
                post("hunter22", "ada", 200, "is taken"),
            ],
        ),
        (
            "ada",
            secret(),
            "Err(Unfit(",
            vec![
                post("hunter22", "eve", 403, "not of who asked"),
                post("hunter22", "a\r\nb", 403, "not of who asked"),
                post("hunter22", "eve", 404, "has ended"),
                post("hunter22", "ada", 404, "has ended"),
            ],
        ),
        (
            ANONYMOUS,
            Question::file("f?"),
            "TimedOut",
            vec![(None, 404, "has ended"), post("a", "", 404, "has ended")],
        ),
        (
            ANONYMOUS,
            secret(),
            "TimedOut",
            vec![(None, 200, "type=password")],
        ),
    ];
    for (asked, question, answer, steps) in rows {
        let questions = Questions::default().with_page(PATH);
        let page = routes(questions.clone(), Arc::new(of_tokens()));
        let (path, waits) = ask(&questions, asked, question).await;
        let unknown = format!("{PATH}{}", "0".repeat(32));
        assert_eq!(
            sent(&page, &unknown, filled("hunter22", "ada")).await,
            sent(&page, &unknown, None).await
        );
        for (body, status, shows) in steps {
            let (found, html) = sent(&page, &path, body).await;
            assert_eq!(found, status, "{html}");
            assert!(
                html.contains(shows) && !html.contains("hunter"),
                "{shows}: {html}"
            );
        }
        let ended = match waits.await.unwrap() {
            Ok(Answer::Secret(secret)) => secret.expose().to_owned(),
            other => format!("{other:?}"),
        };
        assert!(ended.contains(answer), "{ended}");
        // answered, refused, or its time is over
        assert_eq!(sent(&page, &path, None).await.0, 404);
        assert_eq!(sent(&page, &path, filled("hunter22", "ada")).await.0, 404);
    }
}
