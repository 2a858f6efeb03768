//! One question, and the check of answers against it.

use std::time::Duration;

use serde_json::{Value, json};

use super::schema::{self, Fit, ensure};
use super::{Answer, Upload};

/// The most bytes of a message, and the longest time that a question may be open.
const MAX_MESSAGE: usize = 16 * 1024;
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The name of the only member of a question other than a form.
const ONLY: &str = "answer";

callward_core::words! {
    /// What a question asks for.
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    QuestionKind {
        /// A yes or a no.
        Confirmation = "confirmation",
        /// A text.
        Text = "text",
        /// One of several options.
        Select = "select",
        /// Some of several options.
        MultiSelect = "multiselect",
        /// Several members.
        Form = "form",
        /// A file.
        File = "file",
        /// A secret.
        Secret = "secret",
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// What the person reads: plain text, which names who asks.
    pub message: String,
    /// How long it is open. Default: 60 s.
    pub timeout: Duration,
    /// The answer if none comes in time. Default: none, which is an error. What a form has filled
    /// in already is not the answer of a person, and is never used in its place.
    pub on_timeout: Option<Value>,
    kind: QuestionKind,
    schema: Value,
}

impl Question {
    fn new(kind: QuestionKind, message: impl Into<String>, schema: Value) -> Self {
        Self {
            message: message.into(),
            timeout: Duration::from_secs(60),
            on_timeout: None,
            kind,
            schema,
        }
    }

    /// Asks for a yes or a no.
    pub fn confirmation(message: impl Into<String>) -> Self {
        let schema = json!({"type": "boolean"});
        Self::new(QuestionKind::Confirmation, message, schema)
    }

    /// Asks for a text of up to 4,096 characters. [Keywords](Self::with): `minLength`, `maxLength`,
    /// `pattern`, and `format`, which is not checked.
    pub fn text(message: impl Into<String>) -> Self {
        Self::new(QuestionKind::Text, message, json!({"type": "string"}))
    }

    /// Asks for one of these options.
    pub fn select(message: impl Into<String>, options: &[&str]) -> Self {
        let schema = schema::choice(&json!(options));
        Self::new(QuestionKind::Select, message, schema)
    }

    /// Asks for any of these options. [Keywords](Self::with): `minItems`, `maxItems`.
    pub fn multi_select(message: impl Into<String>, options: &[&str]) -> Self {
        let schema = json!({"type": "array", "items": schema::choice(&json!(options))});
        Self::new(QuestionKind::MultiSelect, message, schema)
    }

    /// Asks for the members of an object with this JSON Schema. It has to be flat: members are
    /// booleans, texts, numbers, and choices of one or several texts.
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self::new(QuestionKind::Form, message, schema)
    }

    /// Asks for a secret. [Keywords](Self::with): those of a text.
    pub fn secret(message: impl Into<String>) -> Self {
        Self::new(QuestionKind::Secret, message, json!({"type": "string"}))
    }

    /// Asks for a file of up to 10 MiB. [Keywords](Self::with): `maxBytes`, and `accept`, a list of
    /// media types such as `text/plain` and `image/*`.
    pub fn file(message: impl Into<String>) -> Self {
        let schema = json!({"maxBytes": 10 * 1024 * 1024, "accept": ["*"]});
        Self::new(QuestionKind::File, message, schema)
    }

    /// Sets a keyword of the answer's schema: `title`, `description`, `default`, or one of its
    /// kind.
    #[must_use]
    pub fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        if let Some(schema) = self.schema.as_object_mut() {
            schema.insert(keyword.to_owned(), value.into());
        }
        self
    }

    /// Returns what it asks for.
    #[must_use]
    pub const fn kind(&self) -> QuestionKind {
        self.kind
    }

    /// Returns the schema of the answer.
    #[must_use]
    pub const fn schema(&self) -> &Value {
        &self.schema
    }

    pub(super) fn validate(&self) -> Fit {
        let fits = (1..=MAX_MESSAGE).contains(&self.message.len());
        ensure(fits, || {
            "its message is empty, or longer than 16 KiB".to_owned()
        })?;
        let fits = !self.timeout.is_zero() && self.timeout <= MAX_TIMEOUT;
        ensure(fits, || format!("its timeout is {:?}", self.timeout))?;
        match self.kind {
            QuestionKind::Form => schema::validate_form(&self.schema)?,
            QuestionKind::File => {}
            _ => schema::validate(&self.schema)?,
        }
        let late = self.on_timeout.clone().map(Answer::Value);
        let late = late.map_or(Ok(()), |answer| self.check(&answer));
        late.map_err(|why| format!("`on_timeout` {why}"))
    }

    /// Returns the form for the client; `None` for what a page has to ask for.
    pub(super) fn to_form(&self) -> Option<Value> {
        match self.kind {
            QuestionKind::Secret | QuestionKind::File => None,
            QuestionKind::Form => Some(self.schema.clone()),
            _ => Some(json!({
                "type": "object", "properties": {ONLY: self.schema}, "required": [ONLY],
            })),
        }
    }

    /// Returns the answer that the content of a form is.
    pub(super) fn answer_of(&self, mut content: Value) -> Answer {
        Answer::Value(match self.kind {
            QuestionKind::Form => content,
            _ => content.get_mut(ONLY).map(Value::take).unwrap_or_default(),
        })
    }

    /// Checks an answer. The reason is for the person.
    pub(super) fn check(&self, answer: &Answer) -> Fit {
        match (self.kind, answer) {
            (QuestionKind::Secret, Answer::Secret(secret)) => {
                schema::check(&self.schema, &secret.expose().into())
            }
            (QuestionKind::File, Answer::File(file)) => self.check_file(file),
            (QuestionKind::Secret | QuestionKind::File, _)
            | (_, Answer::Secret(_) | Answer::File(_)) => Err(format!("must be a {}", self.kind)),
            (QuestionKind::Form, Answer::Value(value)) => schema::check_form(&self.schema, value),
            (_, Answer::Value(value)) => schema::check(&self.schema, value),
        }
    }

    fn check_file(&self, file: &Upload) -> Fit {
        let (most, accept) = (&self.schema["maxBytes"], &self.schema["accept"]);
        let fits = most
            .as_u64()
            .is_some_and(|most| file.content.len() as u64 <= most);
        ensure(fits, || format!("must have at most {most} bytes"))?;
        let given = file.media_type.to_ascii_lowercase();
        let accepts = |accepted: &str| match accepted.strip_suffix('*') {
            Some(start) => given.starts_with(start),
            None => given == accepted,
        };
        let mut all = accept
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        ensure(all.any(accepts), || format!("must be of {accept}"))
    }

    /// Returns the question once more, with what was wrong with the last answer.
    pub(super) fn again(&self, reason: &str) -> Self {
        let message = format!(
            "{}\n\nPlease answer again. The last answer does not fit: {reason}.",
            self.message
        );
        Self {
            message,
            ..self.clone()
        }
    }
}
