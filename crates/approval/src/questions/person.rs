//! The person at the client of a call.

use std::future::pending;

use bytes::Bytes;
use callward_core::{ClientMethod, ToolCall};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Answer, Question, QuestionError, Questions, Secret, Upload};
use crate::RequestId;

/// The first revision of MCP whose forms have choices of several.
const MULTI_SELECT: &str = "2025-11-25";

/// What the client answers.
#[derive(Deserialize)]
struct Reply {
    action: Action,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// The person at the client of a call: [`Questions::to`]. Each question fails with
/// [`QuestionError`] if it has no answer that fits.
#[derive(Debug, Clone, Copy)]
pub struct Person<'a> {
    pub(super) questions: &'a Questions,
    pub(super) call: &'a ToolCall,
}

#[expect(clippy::missing_errors_doc, reason = "all have the same: see the type")]
impl Person<'_> {
    /// Returns `true` if there is a page, and the client opens it: without a handler, secrets and
    /// files can be asked for then.
    #[must_use]
    pub fn has_page(self) -> bool {
        let url = br#"{"mode": "url"}"#;
        let opens = self.call.capabilities.allow(ClientMethod::Elicit, url);
        opens && self.questions.page.is_some() && self.call.client.is_some()
    }

    /// Asks for a yes or a no. Only `true` is a yes; declining is a no.
    pub async fn confirm(self, message: &str) -> Result<bool, QuestionError> {
        match self.ask(Question::confirmation(message)).await {
            Ok(answer) => Ok(answer == Answer::Value(true.into())),
            Err(QuestionError::Declined) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Asks for a text.
    pub async fn text(self, message: &str) -> Result<String, QuestionError> {
        self.value(Question::text(message)).await
    }

    /// Asks for one of these options.
    pub async fn select(self, message: &str, options: &[&str]) -> Result<String, QuestionError> {
        self.value(Question::select(message, options)).await
    }

    /// Asks for any of these options.
    pub async fn multi_select(
        self,
        message: &str,
        options: &[&str],
    ) -> Result<Vec<String>, QuestionError> {
        self.value(Question::multi_select(message, options)).await
    }

    /// Asks for the members of an object with this schema.
    pub async fn form(
        self,
        message: &str,
        schema: Value,
    ) -> Result<Map<String, Value>, QuestionError> {
        self.value(Question::form(message, schema)).await
    }

    /// Asks for a secret, at the page or by the handler.
    pub async fn secret(self, message: &str) -> Result<Secret, QuestionError> {
        match self.ask(Question::secret(message)).await? {
            Answer::Secret(secret) => Ok(secret),
            _ => Err(unexpected()),
        }
    }

    /// Asks for a file, at the page or by the handler.
    pub async fn file(self, message: &str) -> Result<Upload, QuestionError> {
        match self.ask(Question::file(message)).await? {
            Answer::File(file) => Ok(file),
            _ => Err(unexpected()),
        }
    }

    async fn value<T: DeserializeOwned>(self, question: Question) -> Result<T, QuestionError> {
        match self.ask(question).await? {
            Answer::Value(value) => serde_json::from_value(value).map_err(|_| unexpected()),
            _ => Err(unexpected()),
        }
    }

    /// Asks the client once. Consent to open a URL is not the answer, which the page has.
    pub(super) async fn ask_client(
        self,
        question: &Question,
        id: &RequestId,
        url: Option<&str>,
    ) -> Result<Answer, QuestionError> {
        let client = self.call.client.as_ref();
        let client = client.ok_or(QuestionError::Unsupported("the call has no client"))?;
        let (message, form) = (&question.message, question.to_form());
        let is_form = form.is_some();
        let params = match (form, url) {
            (Some(form), _) => {
                let inbound = self.call.inbound.as_ref();
                let version = inbound.and_then(|inbound| inbound.protocol_version);
                let mut members = form["properties"].as_object().into_iter().flatten();
                let several = members.any(|(_, schema)| schema["type"] == "array");
                if several && version.is_some_and(|version| version < MULTI_SELECT) {
                    return Err(QuestionError::Unsupported(
                        "its MCP has no choice of several",
                    ));
                }
                json!({"message": message, "requestedSchema": form})
            }
            (None, Some(url)) if client.takes_rounds() => {
                json!({"mode": "url", "message": message, "url": url})
            }
            // before 2026-07-28 elicitations have ids
            (None, Some(url)) => {
                json!({"mode": "url", "message": message, "url": url, "elicitationId": id})
            }
            (None, None) => return Err(QuestionError::Unsupported("there is no page for it")),
        };
        let params = Bytes::from(params.to_string());
        if !self.call.capabilities.allow(ClientMethod::Elicit, &params) {
            return Err(QuestionError::Unsupported("it does not declare it"));
        }
        let reply = client.ask(ClientMethod::Elicit, params).await?;
        let reply: Reply = serde_json::from_slice(&reply)
            .map_err(|error| QuestionError::Unfit(error.to_string()))?;
        match reply.action {
            Action::Accept if is_form => Ok(question.answer_of(reply.content)),
            Action::Accept => pending().await,
            Action::Decline => Err(QuestionError::Declined),
            Action::Cancel => Err(QuestionError::Cancelled),
        }
    }
}

/// Never happens: the check refuses answers of other kinds.
fn unexpected() -> QuestionError {
    QuestionError::Unfit("is of another kind".to_owned())
}
