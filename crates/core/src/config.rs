//! Invalid settings.

use std::fmt;

/// An invalid setting of a layer, and why it is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidConfig {
    field: &'static str,
    reason: &'static str,
}

impl InvalidConfig {
    /// Creates it from the name of the setting and the rest of a sentence that begins with that
    /// name.
    pub const fn new(field: &'static str, reason: &'static str) -> Self {
        Self { field, reason }
    }

    /// Returns the name of the setting.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the rest of the sentence that begins with its name.
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl std::error::Error for InvalidConfig {}
