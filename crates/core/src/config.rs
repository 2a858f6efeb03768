//! Settings that make no sense.

use std::fmt;

/// A layer's setting that makes no sense, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidConfig {
    field: &'static str,
    reason: &'static str,
}

impl InvalidConfig {
    /// Names the setting, and says what is wrong with it in words that go on from its name.
    pub const fn new(field: &'static str, reason: &'static str) -> Self {
        Self { field, reason }
    }

    /// Returns the name of the setting.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns what is wrong with it, in words that go on from its name.
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
