//! Messages over HTTP, and a legacy client with a session, request by request.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::{http, within};

/// A message over HTTP.
pub(crate) fn message(request: RequestBuilder, message: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(message.to_string())
}

/// Reads a JSON-RPC answer out of plain JSON or an event stream.
pub(crate) fn answer_of(body: &str) -> Value {
    let last_event = body
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .next_back();
    serde_json::from_str(last_event.unwrap_or(body).trim()).unwrap_or_else(|_| panic!("{body}"))
}

/// One session at an endpoint.
pub(crate) struct Legacy {
    http: reqwest::Client,
    url: String,
    session: String,
}

impl Legacy {
    pub(crate) async fn open(url: &str) -> Self {
        let http = http();
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let answer = within("initialize", message(http.post(url), &hello).send())
            .await
            .unwrap();
        let session = answer.headers()["mcp-session-id"].to_str().unwrap();
        let session = session.to_owned();
        let client = Self {
            http,
            url: url.to_owned(),
            session,
        };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let sent = message(client.request(reqwest::Method::POST), &ready).send();
        assert!(within("ready", sent).await.unwrap().status().is_success());
        client
    }

    /// Calls a tool, and returns the text of the result, or of the error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> String {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let sent = message(self.request(reqwest::Method::POST), &call).send();
        let body = within(tool, sent).await.unwrap().text().await.unwrap();
        let answer = answer_of(&body);
        let text = &answer["result"]["content"][0]["text"];
        let error = &answer["error"]["message"];
        let reported = text.as_str().or(error.as_str());
        reported.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Ends the session.
    pub(crate) async fn end(self) {
        let sent = self.request(reqwest::Method::DELETE).send();
        assert!(within("the end", sent).await.unwrap().status().is_success());
    }

    fn request(&self, method: reqwest::Method) -> RequestBuilder {
        self.http
            .request(method, &self.url)
            .header("mcp-session-id", &self.session)
            .header("mcp-protocol-version", "2025-11-25")
    }
}
