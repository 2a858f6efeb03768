//! As much of MCP as a server needs whose faults are the point.

use callward_core::ToolDefinition;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ledger;
use crate::{Fault, Refusal};

/// Which revisions of the protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two eras")]
pub enum Era {
    /// Those up to 2025-11-25: `initialize`, and sessions.
    Legacy,
    /// Those from 2026-07-28 on: each request stands for itself.
    Modern,
}

/// What a client wants.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A tool is called.
    Call(Call),
    /// Something that is answered without any chaos.
    Question { method: String, answer: Vec<u8> },
    /// Nothing that would have an answer.
    Statement,
}

/// One call of a tool.
#[derive(Debug)]
pub(crate) struct Call {
    /// The id of the request, as JSON.
    id: String,
    /// Which call it is.
    pub(crate) identity: u64,
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

/// A server's answers to all that is no call.
#[derive(Debug)]
pub(crate) struct Protocol {
    pub(crate) era: Era,
    tools: Value,
}

impl Protocol {
    pub(crate) fn new(era: Era, tools: &[ToolDefinition]) -> Self {
        let tools = tools
            .iter()
            .filter_map(|tool| serde_json::from_slice::<Value>(tool.raw()).ok())
            .collect();
        Self { era, tools }
    }

    /// Reads a message; what is none is nothing that would have an answer.
    pub(crate) fn read(&self, message: &[u8]) -> Asked {
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
            let identity = params
                .and_then(|params| serde_json::from_str::<CallParams<'_>>(params.get()).ok())
                .and_then(|params| ledger::identity(params.arguments?.get().as_bytes()));
            return match identity {
                Some(identity) => Asked::Call(Call { id, identity }),
                None => Asked::Question {
                    method,
                    answer: error(&id, -32_602, "the arguments name no call"),
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
    /// The id of the request, as JSON.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What a call is answered that was executed.
    pub(crate) fn done(&self) -> Vec<u8> {
        let text = format!("did {}", self.identity);
        result(
            &self.id,
            &json!({"content": [{"type": "text", "text": text}]}),
        )
    }

    /// What it is answered if its tool fails.
    pub(crate) fn report(&self) -> Vec<u8> {
        let content = json!([{"type": "text", "text": "the tool failed"}]);
        result(&self.id, &json!({"content": content, "isError": true}))
    }

    /// What it is answered if it is refused.
    pub(crate) fn refuse(&self, refusal: Refusal) -> Vec<u8> {
        error(&self.id, refusal.code, "the server answered with an error")
    }

    /// What a fault lets it be answered, in whole; nothing, if it never is.
    pub(crate) fn answer(&self, fault: Option<Fault>) -> Option<Vec<u8>> {
        match fault {
            None | Some(Fault::Drip { .. } | Fault::LoseReply { .. } | Fault::Slow { .. }) => {
                Some(self.done())
            }
            Some(Fault::Answer { refusal, .. }) => Some(self.refuse(refusal)),
            Some(Fault::Report { .. }) => Some(self.report()),
            Some(_) => None,
        }
    }
}

fn result(id: &str, result: &Value) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes()
}

fn error(id: &str, code: i64, text: &str) -> Vec<u8> {
    let error = json!({"code": code, "message": text});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}
