//! The page that asks a person for the secrets that a call lacks.

use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::RequestBuilder;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation,
    ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{RequestContext, RoleClient};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, ErrorData};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::missing::needs;
use crate::scripted::Script;
use crate::support::{Gateway, SERVE, answered, callward, ends, file, http, text, within};

/// Answers `whole` if the call has the secrets that the person gives, and `lacks` otherwise.
const CALL: &str = r#"
case $line in
*'"password":"hunter\"2"'*) says whole ;;
*) says lacks ;;
esac
"#;
const SECRET: &str = "hunter\"2";

fn tools() -> Value {
    let secret = |text: &str| json!({"type": "string", "minLength": 3, "description": text});
    json!([
        needs(
            "login",
            true,
            &json!({"password": secret("Of <b>ada</b>."), "api_token": secret("")})
        ),
        needs(
            "enter",
            true,
            &json!({"password": secret(""), "lines": {"type": "integer"}})
        ),
        needs(
            "guess",
            true,
            &json!({"pin": {"type": "string", "format": "password"}})
        ),
    ])
}

/// A person who fills forms in, and secrets at the page.
#[derive(Clone)]
struct Person {
    /// What the page is sent as the key: each but the last is refused.
    keys: Vec<String>,
    /// The modes and messages of the questions.
    asked: Arc<Mutex<Vec<(&'static str, String)>>>,
    urls: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new().with_url(UrlElicitationCapability::new());
        capabilities.elicitation =
            Some(elicitation.with_form(FormElicitationCapability::default()));
        ClientConfig::new(capabilities, Implementation::new("ada", "1"))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let accepted = ElicitResult::new(ElicitationAction::Accept);
        let (url, message) = match params {
            ElicitRequestParams::UrlElicitationParams { url, message, .. } => (url, message),
            ElicitRequestParams::FormElicitationParams { message, .. } => {
                self.asked.lock().push(("form", message));
                return Ok(accepted.with_content(json!({"lines": 3})));
            }
            other => panic!("{other:?}"),
        };
        let (status, html) = answered(http().get(&url)).await;
        assert_eq!(status, 200, "{html}");
        assert!(
            !html.contains("<b>") && html.contains("type=password"),
            "{html}"
        );
        for (at, key) in self.keys.iter().enumerate() {
            let is_last = at + 1 == self.keys.len();
            let (status, html) = answered(filled(&url, key)).await;
            assert_eq!(status, if is_last { 200 } else { 403 }, "{html}");
        }
        assert_eq!(answered(http().get(&url)).await.0, 404, "it is answered");
        self.asked.lock().push(("url", message));
        self.urls.lock().push(url);
        Ok(accepted)
    }
}

/// Sends the form as a browser does.
fn filled(url: &str, key: &str) -> RequestBuilder {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.append_pair("answer", SECRET).append_pair("key", key);
    http()
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", "null")
        .header("sec-fetch-site", "same-origin")
        .body(body.finish())
}

impl Person {
    fn new(keys: &[&String]) -> Self {
        Self {
            keys: keys.iter().map(|key| (*key).clone()).collect(),
            asked: Arc::default(),
            urls: Arc::default(),
        }
    }

    /// Calls a tool without arguments; returns what it says.
    async fn calls(&self, gateway: &Gateway, is_modern: bool, tool: &str) -> String {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let mode = match is_modern {
            true => ClientLifecycleMode::Discover { preferred_versions },
            false => ClientLifecycleMode::Initialize,
        };
        let mut config = StreamableHttpClientTransportConfig::with_uri(gateway.url.as_str());
        if let Some(key) = self.keys.last() {
            config = config.auth_header(key);
        }
        let transport = StreamableHttpClientTransport::with_client(http(), config);
        let client = self.clone().serve_with_lifecycle(transport, mode);
        let client = within("connecting", client).await.unwrap();
        let call = client.call_tool(CallToolRequestParams::new(format!("host__{tool}")));
        let result = json!(within("the answer", call).await.unwrap());
        client.cancel().await.unwrap();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

fn config() -> String {
    let script = Script {
        call: CALL,
        ..Script::counting(&tools())
    };
    script.server("host")
}

#[tokio::test]
async fn secrets_come_by_the_page_and_are_written_nowhere() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let [eve, ada] = &mut ["eve", "ada"].map(str::to_owned);
    for key in [&mut *eve, &mut *ada] {
        let dir = state.path().to_str().unwrap();
        let done = ends(&["keys", "create", key, "--state-dir", dir]).await;
        text(&done.stdout).trim().clone_into(key);
    }
    let folder = tempfile::tempdir().unwrap();
    let [log, record] = ["audit.jsonl", "record.jsonl"].map(|name| folder.path().join(name));
    let config = file(format!(
        "ask_missing = true\n[auth]\nkeys = true\n[audit]\npath = {log:?}\nopen_world_path = \
         {log:?}\nrecord = \"all\"\n{}",
        config()
    ));
    let paths = [config.path(), &record].map(|path| path.to_str().unwrap().to_owned());
    let args = ["--config", &paths[0], "--record", &paths[1]];
    let mut command = callward(&[&SERVE[..], &args].concat());
    command.env("CALLWARD_LOG", "trace");
    let gateway = Gateway::started(command, Some(config), Some(state)).await;
    let person = Person::new(&[eve, ada]);
    for is_modern in [false, true] {
        for (tool, modes) in [("login", ["url", "url"]), ("enter", ["form", "url"])] {
            assert_eq!(person.calls(&gateway, is_modern, tool).await, "whole");
            let asked = std::mem::take(&mut *person.asked.lock());
            let found: Vec<_> = asked.iter().map(|(mode, _)| *mode).collect();
            assert_eq!(found, modes, "{asked:?}");
            let expected = format!("The tool `host__{tool}` needs `password` to run.");
            assert!(asked[1].1.starts_with(&expected), "{asked:?}");
        }
    }
    let urls = std::mem::take(&mut *person.urls.lock());
    assert_eq!(urls.len(), 6);
    let refusals = "callward_auth_refusals_total{callward_reason=\"unknown_key\"} 6";
    gateway.measures(&[refusals]).await;
    // the checks of the listener hold for what is no question
    let token = urls[0].rsplit('/').next().unwrap();
    for (request, status) in [
        (http().get(&urls[0]).header("host", "evil.example"), 403),
        (
            filled(&urls[0], ada).header("origin", "http://evil.example"),
            403,
        ),
        (filled(&urls[0], ada), 404),
        (http().get(gateway.at("/ask")).header("origin", "null"), 403),
        (http().get(gateway.at("/ask")), 404),
        (http().get(gateway.public(&format!("/ask/{token}"))), 404),
    ] {
        assert_eq!(answered(request).await.0, status);
    }
    let said = gateway.stopped().await;
    assert!(
        said.contains("kind=secret"),
        "the questions are logged: {said}"
    );
    let [log, record] = [log, record].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(log.contains("\"password\":\"[redacted]\""), "{log}");
    assert!(record.contains("password"), "{record}");
    for written in [&said, &log, &record] {
        let tokens = urls.iter().map(|url| url.rsplit('/').next().unwrap());
        for secret in tokens.chain(["hunter", ada, eve]) {
            assert!(!written.contains(secret), "{secret}: {written}");
        }
    }
}

#[tokio::test]
async fn a_secret_is_not_asked_for_without_a_page_or_if_logs_would_show_it() {
    let place = tempfile::tempdir().unwrap();
    let socket = format!("[admin]\nlisten = \"unix:{}/a\"\n", place.path().display());
    for (listener, tool) in [(&*socket, "login"), (&socket, "enter"), ("", "guess")] {
        let config = format!("ask_missing = true\n{listener}{}", config());
        let gateway = Gateway::configured(&config).await;
        let person = Person::new(&[]);
        assert_eq!(person.calls(&gateway, false, tool).await, "lacks");
        assert!(person.asked.lock().is_empty(), "{tool}");
    }
}
