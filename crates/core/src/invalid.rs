//! Texts, numbers and settings that are not what they have to be.

/// A text or number that is not what it has to be; its `Display` says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(String);

impl InvalidValue {
    /// Makes the error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// An invalid setting of a layer, and why it is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
#[non_exhaustive]
pub struct InvalidConfig {
    /// The name of the setting.
    pub field: &'static str,
    /// The rest of the sentence that begins with its name.
    pub reason: &'static str,
}

impl InvalidConfig {
    /// Creates it from the name of the setting and the rest of a sentence that begins with that
    /// name.
    pub const fn new(field: &'static str, reason: &'static str) -> Self {
        Self { field, reason }
    }
}
