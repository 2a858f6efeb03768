//! A caller: its session, its connection, and how it reads answers.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};

use crate::http::{Connection, Endpoint, headers};

/// Which protocol a caller speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Era {
    /// 2025-11-25: a session, opened by `initialize`.
    #[default]
    Legacy,
    /// 2026-07-28: no session, each request says everything.
    Modern,
}

impl Era {
    fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"peers-load","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#,
);
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// With this text.
    Text(String),
    /// With `isError`, and this text.
    Failed(String),
    /// With a JSON-RPC error.
    Rpc(i64, String),
    /// With a status that is not an answer of MCP.
    Status(u16, String),
    /// Without an answer.
    Lost(String),
}

impl Answer {
    /// Whether the tool's own answer came.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

/// Why there is no session, or no listing.
#[derive(Debug)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// One caller.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    headers: http::HeaderMap,
    era: Era,
    id: u64,
}

impl Client {
    /// Connects, and opens a session where the protocol has them.
    pub async fn connect(endpoint: &Endpoint, era: Era) -> Result<Self, Error> {
        let mut client = Self {
            connection: Connection::new(endpoint.clone()),
            headers: headers(),
            era,
            id: 0,
        };
        if era == Era::Legacy {
            client.initialize().await?;
        }
        client.headers.insert(
            "mcp-protocol-version",
            HeaderValue::from_static(era.version()),
        );
        if era == Era::Legacy {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let sent = client.send(note.to_string().into()).await;
            sent.map_err(|error| Error(format!("initialized: {error:?}")))?;
        }
        Ok(client)
    }

    /// As [`connect`](Self::connect), and lists the tools once. A server may lose the message that
    /// opens the session when many are opened at once; such a session is given up for another.
    pub async fn settled(endpoint: &Endpoint, era: Era) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut client = Self::connect(endpoint, era).await?;
            match client.tools().await {
                Ok(_) => return Ok(client),
                Err(error) if tries == 5 => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    async fn initialize(&mut self) -> Result<(), Error> {
        let request = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": self.era.version(), "capabilities": {},
                "clientInfo": { "name": "peers-load", "version": "1" },
            },
        });
        let exchange = self
            .connection
            .send(Method::POST, &self.headers, request.to_string().into())
            .await
            .map_err(Error)?;
        if !exchange.status.is_success() {
            let body = String::from_utf8_lossy(&exchange.body).into_owned();
            return Err(Error(format!("initialize: {}: {body}", exchange.status)));
        }
        if let Some(session) = exchange.headers.get(SESSION) {
            self.headers.insert(SESSION, session.clone());
        }
        Ok(())
    }

    /// Ends the session where there is one. A server may refuse that, and loses nothing by it.
    pub async fn close(mut self) {
        if self.headers.contains_key(SESSION) {
            let _ = self
                .connection
                .send(Method::DELETE, &self.headers, Bytes::new())
                .await;
        }
    }

    async fn send(&mut self, body: Bytes) -> Result<Bytes, Answer> {
        let sent = self
            .connection
            .send(Method::POST, &self.headers, body)
            .await;
        let exchange = sent.map_err(Answer::Lost)?;
        if exchange.status.is_success() || message(&exchange.body).is_some() {
            return Ok(exchange.body);
        }
        let body = String::from_utf8_lossy(&exchange.body).into_owned();
        Err(Answer::Status(exchange.status.as_u16(), body))
    }

    fn request(&mut self, method: &'static str, name: Option<&str>, params: &str) -> Bytes {
        self.id += 1;
        let id = self.id;
        let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"#);
        body.push_str(params);
        if self.era == Era::Modern {
            if !params.is_empty() {
                body.push(',');
            }
            body.push_str(META);
            self.headers
                .insert("mcp-method", HeaderValue::from_static(method));
            match name.and_then(|name| HeaderValue::from_str(name).ok()) {
                Some(name) => self.headers.insert("mcp-name", name),
                None => self.headers.remove("mcp-name"),
            };
        }
        body.push_str("}}");
        body.into()
    }

    /// The tools as they are listed, all pages.
    pub async fn tools(&mut self) -> Result<Vec<Value>, Error> {
        let mut tools = Vec::new();
        let mut params = String::new();
        loop {
            let request = self.request("tools/list", None, &params);
            let body = self.send(request).await;
            let body = body.map_err(|answer| Error(format!("tools/list: {answer:?}")))?;
            let listing: Value = message(&body)
                .and_then(|json| serde_json::from_slice(json).ok())
                .ok_or_else(|| Error("tools/list: no JSON".to_owned()))?;
            match &listing["result"]["tools"] {
                Value::Array(page) => tools.extend(page.iter().cloned()),
                _ => return Err(Error(format!("tools/list: {listing}"))),
            }
            match &listing["result"]["nextCursor"] {
                Value::String(cursor) => params = format!(r#""cursor":{}"#, json!(cursor)),
                _ => return Ok(tools),
            }
        }
    }

    /// The name that a tool of the upstream has here: its own, or one that ends in it.
    pub async fn name_of(&mut self, tool: &str) -> Result<String, Error> {
        let tools = self.tools().await?;
        let names: Vec<&str> = tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        find_name(&names, tool)
            .map(str::to_owned)
            .ok_or_else(|| Error(format!("no tool {tool} among {names:?}")))
    }

    fn call_request(&mut self, name: &str, arguments: &str) -> Bytes {
        let mut params = String::with_capacity(64 + name.len() + arguments.len());
        // writing to a string cannot fail
        let _ = write!(params, r#""name":"{name}","arguments":{arguments}"#);
        self.request("tools/call", Some(name), &params)
    }

    /// Calls a tool and reads the answer.
    pub async fn call(&mut self, name: &str, arguments: &Value) -> Answer {
        let request = self.call_request(name, &arguments.to_string());
        match self.send(request).await {
            Ok(body) => read(&body),
            Err(answer) => answer,
        }
    }

    /// Calls a tool, and looks no further than whether it answered: for what is to be quick.
    pub async fn hit(&mut self, name: &str, arguments: &str) -> bool {
        let request = self.call_request(name, arguments);
        match self.send(request).await {
            Ok(body) => holds(&body, b"\"content\"") && !holds(&body, b"\"isError\":true"),
            Err(_) => false,
        }
    }
}

fn holds(body: &[u8], words: &[u8]) -> bool {
    body.windows(words.len()).any(|window| window == words)
}

/// Of several names that end in the one looked for, the shortest is meant.
fn find_name<'a>(names: &[&'a str], tool: &str) -> Option<&'a str> {
    let ends = |name: &&&str| {
        name.strip_suffix(tool)
            .is_some_and(|prefix| !prefix.ends_with(|last: char| last.is_alphanumeric()))
    };
    names
        .iter()
        .filter(ends)
        .min_by_key(|name| name.len())
        .copied()
}

/// The JSON of a body: all of it, or the last event of a stream that has an answer in it.
fn message(body: &[u8]) -> Option<&[u8]> {
    if body.first() == Some(&b'{') {
        return Some(body);
    }
    body.split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .rfind(|data| holds(data, b"\"result\"") || holds(data, b"\"error\""))
}

fn read(body: &[u8]) -> Answer {
    let Some(json) = message(body).and_then(|json| serde_json::from_slice::<Value>(json).ok())
    else {
        return Answer::Lost(format!("no answer in {}", String::from_utf8_lossy(body)));
    };
    if let Some(error) = json.get("error") {
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        return Answer::Rpc(error["code"].as_i64().unwrap_or_default(), message);
    }
    let result = &json["result"];
    let text = match &result["content"][0]["text"] {
        Value::String(text) => text.clone(),
        _ => result.to_string(),
    };
    if result["isError"] == true {
        Answer::Failed(text)
    } else {
        Answer::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let cases = [
            (
                r#"{"result":{"content":[{"type":"text","text":"a"}]}}"#,
                Answer::Text("a".into()),
            ),
            (
                r#"{"result":{"content":[{"type":"text","text":"a"}],"isError":true}}"#,
                Answer::Failed("a".into()),
            ),
            (
                r#"{"error":{"code":-32603,"message":"m"}}"#,
                Answer::Rpc(-32603, "m".into()),
            ),
        ];
        for (body, answer) in cases {
            assert_eq!(read(body.as_bytes()), answer);
            let event = format!("id: 1\ndata:\n\nevent: message\r\ndata: {body}\r\n\r\n");
            assert_eq!(read(event.as_bytes()), answer);
        }
        assert!(matches!(read(b"<html>"), Answer::Lost(_)));
    }

    #[test]
    fn an_event_that_is_no_answer_is_passed_over() {
        let stream =
            "data: {\"result\":{\"content\":[{\"text\":\"a\"}]}}\n\ndata: {\"method\":\"x\"}\n\n";
        assert_eq!(read(stream.as_bytes()), Answer::Text("a".into()));
    }

    #[test]
    fn a_name_may_have_a_prefix_that_ends() {
        let names = ["up_noop_get", "get_item", "up.get_item", "forget_item"];
        assert_eq!(find_name(&names, "noop_get"), Some("up_noop_get"));
        assert_eq!(find_name(&names, "get_item"), Some("get_item"));
        assert_eq!(find_name(&["forget_item"], "get_item"), None);
        assert_eq!(find_name(&["up/get_item"], "get_item"), Some("up/get_item"));
    }
}
