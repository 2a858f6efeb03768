//! What the server offers, read from `data/conformance.json`.
//!
//! The texts of answers and requests are templates: `{key}` stands for an argument, a field of the
//! client's response or a constant. A text `@key` stands for a request of the section `requests`.

use std::collections::BTreeMap;

use rmcp::ErrorData;
use rmcp::model::{JsonObject, ServerCapabilities};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(crate) struct Script {
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) tools: Vec<Entry>,
    pub(crate) prompts: Vec<Entry>,
    pub(crate) resources: Value,
    pub(crate) templates: Value,
    /// By URI, or by the start of one
    pub(crate) contents: BTreeMap<String, Value>,
    requests: JsonObject,
    constants: JsonObject,
}

/// A tool or a prompt.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// As lists have it
    pub(crate) offer: JsonObject,
    /// The result, or its text
    #[serde(default)]
    pub(crate) answer: Value,
    /// The message of the error that takes the answer's place
    pub(crate) error: Option<String>,
    /// What the client is asked before there is an answer
    #[serde(default)]
    pub(crate) rounds: Vec<BTreeMap<String, Value>>,
    /// Whether the rounds are counted in a state that the client returns
    #[serde(default)]
    pub(crate) sealed: bool,
    /// The capability without which there is an error
    pub(crate) needs: Option<String>,
    #[serde(default)]
    pub(crate) logs: Vec<String>,
    #[serde(default)]
    pub(crate) progress: Vec<f64>,
    /// The notification to subscribers
    pub(crate) changed: Option<Value>,
    #[serde(default)]
    pub(crate) delay_ms: u64,
    pub(crate) task: Option<Support>,
    /// What a task asks the client
    #[serde(default)]
    pub(crate) inputs: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Support {
    Optional,
    Required,
}

impl Script {
    pub(crate) fn read() -> serde_json::Result<Self> {
        let mut script: Self =
            serde_json::from_str(include_str!("../../../data/conformance.json"))?;
        for tool in &mut script.tools {
            let schema = tool.offer.entry("inputSchema");
            schema.or_insert_with(|| json!({"type": "object", "properties": {}}));
        }
        Ok(script)
    }

    /// Replaces what stands for something else in the texts of `template`.
    pub(crate) fn fill(&self, template: &Value, values: &JsonObject) -> Value {
        match template {
            Value::String(text) => match self.requests.get(text) {
                Some(request) => self.fill(request, values),
                None => Value::String(self.fill_text(text, values)),
            },
            Value::Array(items) => items.iter().map(|item| self.fill(item, values)).collect(),
            Value::Object(fields) => {
                let filled =
                    |(key, field): (&String, &Value)| (key.clone(), self.fill(field, values));
                Value::Object(fields.iter().map(filled).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
        }
    }

    fn fill_text(&self, text: &str, values: &JsonObject) -> String {
        let mut filled = text.to_owned();
        for (key, value) in values.iter().chain(&self.constants) {
            let place = format!("{{{key}}}");
            filled = match value {
                Value::String(value) => filled.replace(&place, value),
                other => filled.replace(&place, &other.to_string()),
            };
        }
        filled
    }

    /// The answer of an entry whose rounds are over.
    pub(crate) fn answer<T: DeserializeOwned>(
        &self,
        entry: &Entry,
        values: &JsonObject,
    ) -> Result<T, ErrorData> {
        if let Some(error) = &entry.error {
            return Err(ErrorData::internal_error(error.clone(), None));
        }
        let mut filled = match self.fill(&entry.answer, values) {
            Value::String(text) => {
                let content = json!({"type": "text", "text": text});
                let message = json!({"role": "user", "content": content});
                json!({"content": [content], "messages": [message]})
            }
            other => other,
        };
        filled["resultType"] = json!("complete");
        parse(filled)
    }
}

pub(crate) fn parse<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Finds an entry by the name it is offered under.
pub(crate) fn find<'a>(entries: &'a [Entry], name: &str) -> Result<&'a Entry, ErrorData> {
    let named = |entry: &&Entry| entry.offer.get("name").is_some_and(|own| own == name);
    let unknown = || ErrorData::invalid_params(format!("nothing is called {name:?}"), None);
    entries.iter().find(named).ok_or_else(unknown)
}
