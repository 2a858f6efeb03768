//! The names of the fields, and what their values have to be.

use std::borrow::Cow;

use serde_json::Value;

use crate::Field;

/// What the value of a field has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Flag,
    Number,
    Text,
    Texts,
    OneOf(&'static [&'static str]),
}

impl Field {
    /// Finds a field by its name on the wire, or by its short form.
    pub(crate) fn by_key(key: &str) -> Option<Self> {
        let is_named = |field: &Self| field.as_str() == key || field.short() == Some(key);
        Self::ALL.iter().copied().find(is_named)
    }

    /// Returns the short form of the name, which the specification does not know.
    pub(crate) const fn short(self) -> Option<&'static str> {
        match self {
            Self::ReadOnly => Some("readOnly"),
            Self::Destructive => Some("destructive"),
            Self::Idempotent => Some("idempotent"),
            Self::OpenWorld => Some("openWorld"),
            _ => None,
        }
    }

    pub(crate) const fn shape(self) -> Shape {
        match self {
            Self::ReadOnly
            | Self::Destructive
            | Self::Idempotent
            | Self::OpenWorld
            | Self::RequiresConfirmation
            | Self::AuditRequired => Shape::Flag,
            Self::EstimatedDuration | Self::RateLimitHint | Self::CostHint => Shape::Number,
            Self::Title => Shape::Text,
            Self::Tags => Shape::Texts,
            Self::Complexity => Shape::OneOf(&["simple", "medium", "complex"]),
            Self::SecurityLevel => Shape::OneOf(&["public", "internal", "restricted"]),
        }
    }
}

impl Shape {
    /// Returns `true` if a value can be read; `null` counts as absent.
    pub(crate) fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null)
            | (Self::Flag, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::Text, Value::String(_)) => true,
            (Self::Texts, Value::Array(list)) => list.iter().all(Value::is_string),
            (Self::OneOf(words), Value::String(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }

    pub(crate) fn wanted(self) -> Cow<'static, str> {
        match self {
            Self::Flag => "true or false".into(),
            Self::Number => "a number".into(),
            Self::Text => "a string".into(),
            Self::Texts => "a list of strings".into(),
            Self::OneOf(words) => words.join(" or ").into(),
        }
    }
}
