//! What a person answers. Nothing here prints itself.

use std::fmt;

use bytes::Bytes;
use serde_json::Value;

/// The answer to a question.
#[derive(Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
pub enum Answer {
    /// A value; of a form the object of its members.
    Value(Value),
    /// A secret.
    Secret(Secret),
    /// A file.
    File(Upload),
}

/// A secret that a person gave.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A file that a person gave. Its name and media type are what the sender states: the name is not
/// safe as a path, and the content may be of another type.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a page builds it")]
pub struct Upload {
    /// The name.
    pub name: String,
    /// The media type, without parameters.
    pub media_type: String,
    /// The content.
    pub content: Bytes,
}

macro_rules! hidden {
    ($($type:ident)*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($type), "(..)"))
            }
        }
    )*};
}

hidden!(Answer Secret Upload);
