//! The answer of a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::Freshness;
use crate::readable::{self, Unreadable};

mod compare;
mod meta;

pub use meta::{UPSTREAM_META, is_our_meta, nest_ours};

/// The state of the exchange after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputStatus {
    /// The final answer.
    Complete,
    /// The server asks for input first: one round of a multi-round exchange.
    InputRequired,
    /// The call waits for a person's approval, and is to be sent again: it has no answer of a
    /// server.
    Waits,
    /// The call goes on as a task.
    Task,
    /// Anything else the server named: an extension we do not know.
    Other,
}

/// The answer of a tool: the MCP `CallToolResult` object, byte for byte as it came if all can read
/// it, but without a `resultType` of `complete`, which is the default.
///
/// Cloning copies a pointer. Only the two members that policy needs are parsed.
///
/// ```
/// use callward_core::ToolOutput;
///
/// let output = ToolOutput::from_json(r#"{"content":[],"isError":true,"x":1}"#)?;
/// assert!(output.is_error());
/// assert_eq!(&output.body()[..], br#"{"content":[],"isError":true,"x":1}"#);
/// # Ok::<(), callward_core::InvalidOutput>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ToolOutput(Arc<Answer>);

/// One word long, because every layer moves it when it returns an answer.
#[derive(Clone, PartialEq, Eq)]
struct Answer {
    body: Bytes,
    is_error: bool,
    status: OutputStatus,
}

/// An answer that is not a JSON object with the members a tool result has, or that clients may be
/// unable to read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOutput {
    /// It is not a JSON object, or a member has the wrong type.
    #[error("not a tool result: {0}")]
    Json(serde_json::Error),
    /// Clients may be unable to read it.
    #[error("the result {0}")]
    Unreadable(Unreadable),
}

/// A task, as its server states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskHandle {
    /// The server's own id.
    #[serde(rename = "taskId")]
    pub id: String,
    #[serde(default)]
    ttl_ms: serde_json::Value,
}

impl TaskHandle {
    /// Returns how long the server keeps the task from its start on: a day if it states no limit.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        const UNSTATED: Duration = Duration::from_secs(24 * 60 * 60);
        self.ttl_ms.as_u64().map_or(UNSTATED, Duration::from_millis)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default, borrow, deserialize_with = "stated")]
    result_type: Option<&'a RawValue>,
}

/// Reads a member that may be null, which is not the same as absent.
fn stated<'de, D: Deserializer<'de>>(raw: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(raw).map(Some)
}

impl ToolOutput {
    /// Takes a `CallToolResult` object. An escape of a lone surrogate becomes that of the
    /// replacement character: many parsers refuse it.
    ///
    /// # Errors
    ///
    /// [`InvalidOutput`] if the text is not a JSON object, if `isError` or `resultType` has the
    /// wrong type, or if clients may be unable to read it: [`readable::check`].
    pub fn from_json(body: impl Into<Bytes>) -> Result<Self, InvalidOutput> {
        let body = readable::without_lone_surrogates(body.into());
        if body.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
            // serde would read an array into a struct
            let error = serde::de::Error::custom("expected a JSON object");
            return Err(InvalidOutput::Json(error));
        }
        readable::check(&body).map_err(InvalidOutput::Unreadable)?;
        let head: Head<'_> = serde_json::from_slice(&body).map_err(InvalidOutput::Json)?;
        let is_error = head.is_error.unwrap_or(false);
        let Some(stated) = head.result_type else {
            return Ok(Self::new(body, is_error, OutputStatus::Complete));
        };
        let name: Option<String> =
            serde_json::from_str(stated.get()).map_err(InvalidOutput::Json)?;
        Ok(match name.as_deref() {
            None | Some("complete") => {
                let body = meta::without_result_type(&body, stated).map_err(InvalidOutput::Json)?;
                Self::new(body, is_error, OutputStatus::Complete)
            }
            Some("input_required") => Self::new(body, is_error, OutputStatus::InputRequired),
            Some("task") => Self::new(body, is_error, OutputStatus::Task),
            Some(_) => Self::new(body, is_error, OutputStatus::Other),
        })
    }

    /// Answers with one block of text.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::one_text(text.as_ref(), None, false)
    }

    /// Answers that the tool itself failed, with a text for the model: `isError: true`.
    pub fn error_text(text: impl AsRef<str>) -> Self {
        Self::one_text(text.as_ref(), None, true)
    }

    /// Answers with a value: as `structuredContent`, and mirrored as text.
    ///
    /// # Errors
    ///
    /// [`InvalidOutput`] if the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidOutput> {
        let raw = serde_json::value::to_raw_value(value).map_err(InvalidOutput::Json)?;
        Ok(Self::one_text(raw.get(), Some(&raw), false))
    }

    fn one_text(text: &str, structured: Option<&RawValue>, is_error: bool) -> Self {
        let text = serde_json::Value::from(text);
        let mut body = format!(r#"{{"content":[{{"type":"text","text":{text}}}]"#);
        if let Some(structured) = structured {
            body.push_str(r#","structuredContent":"#);
            body.push_str(structured.get());
        }
        if is_error {
            body.push_str(r#","isError":true"#);
        }
        body.push('}');
        Self::new(body.into(), is_error, OutputStatus::Complete)
    }

    /// Makes the answer of a call that [waits](OutputStatus::Waits): the client sends it again,
    /// with a state that is added where it is served.
    #[must_use]
    pub fn waits() -> Self {
        let body = Bytes::from_static(br#"{"resultType":"input_required"}"#);
        Self::new(body, false, OutputStatus::Waits)
    }

    fn new(body: Bytes, is_error: bool, status: OutputStatus) -> Self {
        Self(Arc::new(Answer {
            body,
            is_error,
            status,
        }))
    }

    /// Returns what the body says about freshness. Reads all of it: for a cache that is about to
    /// keep the answer.
    pub fn freshness(&self) -> Freshness {
        Freshness::from_result(&self.0.body)
    }

    /// Moves the body into memory of exactly its size. Do this before keeping it for long: a body
    /// may be a small part of a large buffer, or have spare capacity, and keeps all of it
    /// allocated.
    #[must_use]
    pub fn compact(self) -> Self {
        let body = Bytes::copy_from_slice(&self.0.body);
        // the first clone of fresh bytes allocates their counter: better now than when they are
        // used
        drop(body.clone());
        self.with_body(body)
    }

    /// The same answer, with an equivalent body.
    fn with_body(&self, body: Bytes) -> Self {
        Self::new(body, self.0.is_error, self.0.status)
    }

    /// Returns the whole result object as raw JSON.
    pub fn body(&self) -> &Bytes {
        &self.0.body
    }

    /// Returns `true` if the tool itself reported failure.
    pub fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// Returns the state of the exchange after the answer.
    pub fn status(&self) -> OutputStatus {
        self.0.status
    }

    /// Returns the task that the call goes on as; `None` if it does not, or states no id.
    pub fn task(&self) -> Option<TaskHandle> {
        if self.status() != OutputStatus::Task {
            return None;
        }
        serde_json::from_slice(&self.0.body).ok()
    }

    /// Returns the text blocks of the answer, joined by line breaks; empty if there is none.
    pub fn to_text(&self) -> String {
        #[derive(Deserialize)]
        struct Content {
            #[serde(default)]
            content: Vec<serde_json::Value>,
        }
        let Ok(parsed) = serde_json::from_slice::<Content>(&self.0.body) else {
            return String::new();
        };
        let texts: Vec<&str> = parsed
            .content
            .iter()
            .filter_map(|block| block.get("text")?.as_str())
            .collect();
        texts.join("\n")
    }

    /// Reads `structuredContent`, or the text where there is none, as a value of type `T`.
    ///
    /// # Errors
    ///
    /// The parser's error if neither is JSON of that shape.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Structured<'a> {
            #[serde(default, borrow)]
            structured_content: Option<&'a RawValue>,
        }
        match serde_json::from_slice::<Structured<'_>>(&self.0.body)?.structured_content {
            Some(value) => serde_json::from_str(value.get()),
            None => serde_json::from_str(&self.to_text()),
        }
    }
}

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // results may be secret: only their size is shown
        f.debug_struct("ToolOutput")
            .field("bytes", &self.0.body.len())
            .field("is_error", &self.0.is_error)
            .field("status", &self.0.status)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_and_the_two_members_are_read() {
        let raw = r#" {"resultType":"input_required", "requestState" : "x", "n": 1e2} "#;
        let output = ToolOutput::from_json(raw).unwrap();
        assert_eq!(&output.body()[..], raw.as_bytes());
        assert_eq!(output.status(), OutputStatus::InputRequired);
        assert!(!output.is_error());
    }

    #[test]
    fn a_result_type_of_complete_is_left_out_and_no_other_byte() {
        for (raw, body) in [
            (r#"{"resultType":"complete","n" : 1e2}"#, r#"{"n" : 1e2}"#),
            (
                r#" { "n":1e2 , "resultType" : null } "#,
                r#" { "n":1e2  } "#,
            ),
            (
                r#"{"n":1,"resultType":"complete","resultTyp":2}"#,
                r#"{"n":1,"resultTyp":2}"#,
            ),
            (r#"{ "resultType":"complete"}"#, "{}"),
            (
                r#"{"resultTyp\u0065":"complet\u0065","n":1e2}"#,
                r#"{"n":1e2}"#,
            ),
            (
                r#"{"x":{"resultType":"complete"}}"#,
                r#"{"x":{"resultType":"complete"}}"#,
            ),
        ] {
            let output = ToolOutput::from_json(raw).unwrap();
            assert_eq!(std::str::from_utf8(output.body()).unwrap(), body);
            assert_eq!(output.status(), OutputStatus::Complete);
        }
        assert!(ToolOutput::from_json(r#"{"resultType":7}"#).is_err());
    }

    #[test]
    fn a_compact_body_has_memory_of_its_own() {
        let buffer = Bytes::from(vec![b' '; 4096]);
        let body = Bytes::from_owner([buffer.as_ref(), b"{}"].concat());
        let output = ToolOutput::from_json(body.slice(4096..)).unwrap();
        assert!(!output.body().is_unique());
        drop(body);
        let compact = output.clone().compact();
        assert_eq!(compact, output);
        assert_ne!(compact.body().as_ptr(), output.body().as_ptr());
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for raw in r#"[] [true,null] null  {"isError":"yes"} {}{}"#.split(' ') {
            assert!(ToolOutput::from_json(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn a_value_comes_back_as_it_went_in() {
        let value = serde_json::json!({"id": 9_007_199_254_740_993_u64});
        let output = ToolOutput::json(&value).unwrap();
        assert!(ToolOutput::from_json(output.body().clone()).is_ok());
        assert_eq!(output.parse::<serde_json::Value>().unwrap(), value);
        assert_eq!(ToolOutput::text("a \"b\"").to_text(), "a \"b\"");
        assert!(ToolOutput::error_text("no").is_error());
    }
}
