//! The part of MCP that a failing server needs.

use std::fmt;

use callward_chaos::{Fault, identity};
use callward_core::ToolDefinition;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::exchange::{JSON, Reply};

/// The protocol revisions that a server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, and sessions.
    Legacy,
    /// From 2026-07-28 on: stateless requests.
    Modern,
}

/// A parsed message.
#[derive(Debug)]
pub(super) enum Asked {
    /// A call of a tool.
    Call(Call),
    /// Any other request, with its answer.
    Question { method: String, answer: String },
    /// A message without an answer.
    Statement,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    /// The id of the request, as JSON.
    id: String,
    /// The identity of the call.
    pub(super) identity: u64,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The answers to all requests except calls.
#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) era: Era,
    tools: Value,
}

impl Asked {
    /// Returns the HTTP reply to a message that is not a call.
    pub(super) fn reply(&self, session: &str) -> Reply {
        match self {
            Self::Question { method, answer } => {
                let session = match method.as_str() {
                    "initialize" => format!("mcp-session-id: {session}\r\n"),
                    _ => String::new(),
                };
                Reply::http(200, &format!("{JSON}{session}"), answer)
            }
            Self::Call(_) | Self::Statement => Reply::http(202, "", ""),
        }
    }
}

impl Protocol {
    pub(super) fn new(era: Era, tools: &[ToolDefinition]) -> Self {
        let tools = tools
            .iter()
            .filter_map(|tool| serde_json::from_slice::<Value>(&tool.raw).ok())
            .collect();
        Self { era, tools }
    }

    /// Parses a message; an invalid one has no answer.
    pub(super) fn read(&self, message: &[u8]) -> Asked {
        let Ok(Message {
            id: Some(id),
            method: Some(method),
            params,
        }) = serde_json::from_slice(message)
        else {
            return Asked::Statement;
        };
        let id = id.get().to_owned();
        if method == "tools/call" {
            let call = params
                .and_then(|params| serde_json::from_str::<CallParams<'_>>(params.get()).ok())
                .and_then(|params| identity(params.arguments?.get().as_bytes()));
            return match call {
                Some(identity) => Asked::Call(Call { id, identity }),
                None => Asked::Question {
                    method,
                    answer: error(&id, -32_602, "the arguments have no `call`"),
                },
            };
        }
        let answer = self.answer(&method);
        let answer = answer.map_or_else(
            || error(&id, -32_601, "no such method"),
            |answer| result(&id, &answer),
        );
        Asked::Question { method, answer }
    }

    fn answer(&self, method: &str) -> Option<Value> {
        match (method, self.era) {
            ("server/discover", Era::Modern) => Some(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
            })),
            ("initialize", Era::Legacy) => Some(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "chaos", "version": "1"},
            })),
            ("tools/list", _) => Some(json!({
                "resultType": "complete",
                "tools": self.tools,
                "ttlMs": 0,
                "cacheScope": "private",
            })),
            ("ping", Era::Legacy) => Some(json!({})),
            _ => None,
        }
    }
}

impl Call {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the answer to an executed call.
    pub(super) fn done(&self) -> String {
        let text = format!("did {}", self.identity);
        result(
            &self.id,
            &json!({"content": [{"type": "text", "text": text}]}),
        )
    }

    /// Returns the complete answer under a fault; `None` if it is never answered.
    pub(super) fn answer(&self, fault: Option<Fault>) -> Option<String> {
        match fault {
            None | Some(Fault::Drip { .. } | Fault::LoseReply { .. } | Fault::Slow { .. }) => {
                Some(self.done())
            }
            Some(Fault::Answer { refusal, .. }) => {
                let text = "the server answered with an error";
                Some(error(&self.id, refusal.code, text))
            }
            Some(Fault::Report { .. }) => {
                let content = json!([{"type": "text", "text": "the tool failed"}]);
                Some(result(
                    &self.id,
                    &json!({"content": content, "isError": true}),
                ))
            }
            Some(_) => None,
        }
    }
}

/// Formats the response to a request. `id` is JSON.
pub fn result(id: impl fmt::Display, result: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Formats the error response to a request. `id` is JSON.
pub fn error(id: impl fmt::Display, code: i64, text: &str) -> String {
    let error = json!({"code": code, "message": text});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
