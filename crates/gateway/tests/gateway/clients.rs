//! Clients that see each message: a session over HTTP, and one over pipes.

use std::collections::HashMap;
use std::process::Stdio;

use reqwest::{Method, RequestBuilder};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::scripted::Script;
use crate::support::{callward, http, within};

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

/// Returns the parameters of `initialize`.
pub(crate) fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    })
}

/// A legacy session at an endpoint.
pub(crate) struct Legacy {
    http: reqwest::Client,
    url: String,
    /// What each request has.
    headers: Vec<(&'static str, String)>,
    /// The answer to the greeting.
    pub(crate) hello: Value,
}

impl Legacy {
    pub(crate) async fn open(url: &str) -> Self {
        Self::with(url, Vec::new()).await.unwrap()
    }

    /// Opens a session, where each request has these headers; the answer of a refusal.
    pub(crate) async fn with(
        url: &str,
        headers: Vec<(&'static str, String)>,
    ) -> Result<Self, reqwest::Response> {
        let mut client = Self {
            http: http(),
            url: url.to_owned(),
            headers,
            hello: Value::Null,
        };
        let answer = client.post("initialize", Some(0), greeting()).await;
        let Some(session) = answer.headers().get("mcp-session-id") else {
            return Err(answer);
        };
        let session = session.to_str().unwrap().to_owned();
        client.headers.push(("mcp-session-id", session));
        let version = "2025-11-25".to_owned();
        client.headers.push(("mcp-protocol-version", version));
        client.hello = answer_of(&answer.text().await.unwrap());
        let ready = client.post("notifications/initialized", None, json!({}));
        assert!(ready.await.status().is_success());
        Ok(client)
    }

    pub(crate) async fn post(
        &self,
        method: &str,
        id: Option<u32>,
        params: Value,
    ) -> reqwest::Response {
        let mut body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = id {
            body["id"] = id.into();
        }
        let sent = message(self.request(Method::POST), &body).send();
        within(method, sent).await.unwrap()
    }

    /// Calls a tool, and returns the text of the result, or of the error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.post("tools/call", Some(1), params).await;
        let answer = answer_of(&answer.text().await.unwrap());
        let text = &answer["result"]["content"][0]["text"];
        let error = &answer["error"]["message"];
        let reported = text.as_str().or(error.as_str());
        reported.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Ends the session.
    pub(crate) async fn end(self) {
        let sent = self.request(Method::DELETE).send();
        assert!(within("the end", sent).await.unwrap().status().is_success());
    }

    pub(crate) fn request(&self, method: Method) -> RequestBuilder {
        let request = self.http.request(method, &self.url);
        self.headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, value)
        })
    }
}

/// A client over pipes that sees the very lines.
pub(crate) struct Pipe {
    pub(crate) child: Child,
    /// The answer to the greeting.
    pub(crate) hello: Value,
    /// None once the input has ended.
    pub(crate) stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    next: u64,
    early: HashMap<u64, String>,
}

impl Pipe {
    /// Starts a server and greets it as a legacy client.
    pub(crate) async fn open(args: &[&str]) -> Self {
        Self::open_with(args, &[]).await
    }

    /// Wraps a scripted server.
    pub(crate) async fn around(script: &Script<'_>) -> Self {
        let command = script.command();
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        Self::open(&[&["run", "--ttl", "5m", "--"], &command[..]].concat()).await
    }

    /// As [`open`](Self::open), with more in the environment.
    pub(crate) async fn open_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = callward(args);
        command.envs(environment.iter().copied());
        let mut pipe = Self::start(command);
        pipe.hello = pipe.request("initialize", greeting()).await;
        pipe.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        pipe
    }

    /// Starts a server, and says nothing yet.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            hello: Value::Null,
            next: 0,
            early: HashMap::new(),
        }
    }

    async fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.write(&message).await;
        self.next
    }

    /// Waits for one answer. Every line on the way must be a JSON-RPC message.
    pub(crate) async fn answer(&mut self, id: u64) -> String {
        loop {
            if let Some(line) = self.early.remove(&id) {
                return line;
            }
            let line = within("an answer", self.stdout.next_line());
            let line = line.await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if let Some(id) = message["id"].as_u64() {
                self.early.insert(id, line);
            }
        }
    }

    /// Waits for a notification, and returns its parameters.
    pub(crate) async fn notified(&mut self, method: &str) -> Value {
        loop {
            let line = within(method, self.stdout.next_line());
            let message: Value = serde_json::from_str(&line.await.unwrap().unwrap()).unwrap();
            if message["method"] == method {
                return message["params"].clone();
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        serde_json::from_str(&self.answer(id).await).unwrap()
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", params).await
    }

    /// Lists the tools as raw text, each as it came.
    pub(crate) async fn raw_tools(&mut self) -> Vec<String> {
        let id = self.send("tools/list", json!({})).await;
        let answer = self.answer(id).await;
        let answer: HashMap<&str, &RawValue> = serde_json::from_str(&answer).unwrap();
        let result: HashMap<&str, &RawValue> =
            serde_json::from_str(answer["result"].get()).unwrap();
        let tools: Vec<&RawValue> = serde_json::from_str(result["tools"].get()).unwrap();
        tools.iter().map(|tool| tool.get().to_owned()).collect()
    }

    /// Closes the input and waits for the end.
    pub(crate) async fn close(self) -> bool {
        let Self {
            mut child, stdin, ..
        } = self;
        drop(stdin);
        within("the end", child.wait()).await.unwrap().success()
    }
}
