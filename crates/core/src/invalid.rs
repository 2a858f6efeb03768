//! Texts, numbers and settings that are not what they have to be.

use std::fmt;

/// A text or number that is not what it has to be; its `Display` says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue(String);

impl InvalidValue {
    /// Makes the error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}

/// An invalid setting of a layer, and why it is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl std::error::Error for InvalidConfig {}
