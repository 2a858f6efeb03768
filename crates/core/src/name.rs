//! Names: of tools, of servers, of replica sets.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Method;
use crate::one_line::one_line;

/// A name that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {:?} {reason}", one_line(name, 100))]
pub struct InvalidName {
    what: &'static str,
    name: String,
    reason: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $check:path) => {
        $(#[$doc])*
        ///
        /// Cloning copies a pointer, not the text.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks and takes the name.
            ///
            /// # Errors
            ///
            /// [`InvalidName`] says which rule the name breaks.
            pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
                let name = name.as_ref();
                match $check(name) {
                    Some(reason) => Err(InvalidName { what: $what, name: name.to_owned(), reason }),
                    None => Ok(Self(name.into())),
                }
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = InvalidName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidName;

            fn try_from(name: String) -> Result<Self, Self::Error> {
                Self::new(name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0.as_ref().into()
            }
        }
    };
}

name!(
    /// A tool's name, as its server spells it: 1 to 256 characters, none of them a control
    /// character.
    ///
    /// The MCP specification recommends 1 to 128 of `A-Za-z0-9_-.`; real servers go beyond it, and
    /// a name is only an opaque key here, so only what could break a log line is refused.
    ToolName,
    "tool name",
    tool_name_fault
);

name!(
    /// Names one server: 1 to 32 of `A-Za-z0-9_-`, starting with a letter or digit, without `__`.
    ///
    /// `__` separates server from tool in the names that clients see, so it may not occur in the id
    /// of a server.
    ServerId,
    "server id",
    server_id_fault
);

name!(
    /// Names a replica set: servers that offer the same tools and can replace one another.
    ///
    /// Same rules as [`ServerId`]. A server on its own is a replica set of one, under its own id.
    ReplicaSetId,
    "replica set id",
    server_id_fault
);

impl From<ServerId> for ReplicaSetId {
    fn from(id: ServerId) -> Self {
        Self(id.0)
    }
}

impl ToolName {
    /// Names the tool that stands for a method.
    pub(crate) fn of_method(method: Method) -> Self {
        Self(method.as_str().into())
    }

    /// Names a tool without a usable name by its position in a list.
    pub(crate) fn numbered(position: usize) -> Self {
        Self(format!("#{position}").into())
    }
}

fn tool_name_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty; a tool needs a name")
    } else if name.chars().count() > 256 {
        Some("has more than 256 characters")
    } else if name.chars().any(char::is_control) {
        Some("holds a control character")
    } else {
        None
    }
}

fn server_id_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty; give it 1 to 32 letters, digits, `-` or `_`")
    } else if name.len() > 32 {
        Some("has more than 32 characters")
    } else if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    {
        Some("may hold only letters, digits, `-` and `_`")
    } else if !name.as_bytes()[0].is_ascii_alphanumeric() {
        Some("must start with a letter or digit")
    } else if name.contains("__") || name.ends_with('_') {
        Some("may hold neither `__` nor a closing `_`: `__` separates server from tool")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_breaks_a_rule_says_which() {
        let long = "a".repeat(33);
        for (name, word) in [
            ("", "empty"),
            ("a__b", "separates"),
            ("a_", "separates"),
            ("-a", "start"),
            ("a.b", "only"),
            (&long, "32"),
        ] {
            let fault = ServerId::new(name).expect_err(name).to_string();
            assert!(fault.contains(word), "{name}: {fault}");
        }
        assert!(ServerId::new("orders-eu_1").is_ok());
        // a tool may have any printable name
        assert!(ToolName::new("user.delete/ü").is_ok());
        assert!(ToolName::new("a\nb").is_err());
        assert!(ToolName::new("").is_err());
    }
}
