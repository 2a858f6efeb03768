//! What a call asks to be approved, and what identifies it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use callward_core::{
    Delivery, Effect, ErrorKind, Principal, ReplicaSetId, SafetyLevel, ToolCall, ToolError,
    ToolName,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::canonical::canonical;

/// A SHA-256 digest. As text it is hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const WRONG: &str = "a digest has 64 hexadecimal digits";
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(WRONG);
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digits = std::str::from_utf8(pair).map_err(|_| WRONG)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| WRONG)?;
        }
        Ok(Self(bytes))
    }
}

/// What identifies a call: principal, replica set, tool, its definition, and the JSON value of the
/// arguments. It says something about the arguments, so it is not shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(Digest);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// What a call asks to be approved.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Asked {
    /// Who asks.
    #[serde(with = "crate::request::principal")]
    pub principal: Principal,
    /// The replica set of the tool.
    pub set: ReplicaSetId,
    /// The tool's name at its server.
    pub tool: ToolName,
    /// The digest of the tool's definition: another definition is another request.
    pub definition: Digest,
    /// The arguments that run once approved: JSON, with the members of objects by name, numbers as
    /// they were spelled, and no white space.
    pub arguments: Arc<str>,
    /// The digest of the arguments.
    pub arguments_digest: Digest,
    /// What the plan says that the call may do.
    pub effect: Effect,
    /// How dangerous that is.
    pub safety: SafetyLevel,
    /// Why approval is needed, for a person.
    pub reason: Cow<'static, str>,
}

impl Asked {
    /// Takes what a call asks, and why.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if the arguments are not JSON, or if two parsers may read them
    /// differently.
    pub fn of(call: &ToolCall, reason: impl Into<Cow<'static, str>>) -> Result<Self, ToolError> {
        let arguments = canonical(call.arguments()).ok_or_else(|| {
            let text = "the call needs approval, and its arguments are not JSON that all read \
                        alike; send each member once";
            ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
        })?;
        let (tool, effect) = (call.tool(), call.plan().effect);
        let definition = &tool.definition.raw;
        Ok(Self {
            principal: call.caller().principal.clone(),
            set: tool.set().clone(),
            tool: tool.name().clone(),
            // servers may list the members in another order each time
            definition: match canonical(definition) {
                Some(definition) => Digest::of(definition.as_bytes()),
                None => Digest::of(definition),
            },
            arguments_digest: Digest::of(arguments.as_bytes()),
            arguments: arguments.into(),
            effect,
            safety: effect.safety_level(),
            reason: reason.into(),
        })
    }

    /// Returns what identifies the call.
    #[must_use]
    pub fn key(&self) -> Key {
        let mut hash = Sha256::new();
        for name in [
            self.principal.as_str(),
            self.set.as_str(),
            self.tool.as_str(),
        ] {
            // with its length, so that no two lists of names are equal
            hash.update(name.len().to_le_bytes());
            hash.update(name);
        }
        hash.update(self.definition.0);
        hash.update(self.arguments_digest.0);
        Key(Digest(hash.finalize().into()))
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // arguments may be secret: only their size is shown
        f.debug_struct("Asked")
            .field("principal", &self.principal)
            .field("set", &self.set)
            .field("tool", &self.tool)
            .field("argument_bytes", &self.arguments.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use callward_core::Caller;
    use callward_testkit::tool;

    use super::*;

    #[test]
    fn equal_calls_have_one_key_and_any_other_call_another() {
        let asked = |principal: &str, set: &str, tool: Arc<callward_core::Tool>, json: &str| {
            let caller = Caller::new(Principal::new(principal));
            let call = ToolCall::new(tool, json.as_bytes().to_vec()).with_caller(Arc::new(caller));
            assert_eq!(call.tool().set().as_str(), set);
            Asked::of(&call, "x").unwrap().key()
        };
        let make = |set: &str, name: &str| tool(name).destructive().set(set).build();
        let json = r#"{"a":1,"b":[]}"#;
        let one = asked("ada", "s", make("s", "t"), json);
        assert_eq!(
            one,
            asked("ada", "s", make("s", "t"), r#" {"b": [], "\u0061": 1} "#)
        );
        let changed = tool("t").set("s").destructive().idempotent().build();
        let all = [
            one,
            asked("eve", "s", make("s", "t"), json),
            asked("ada", "s2", make("s2", "t"), json),
            asked("ada", "s", make("s", "t2"), json),
            asked("ada", "s", changed, json),
            asked("ada", "s", make("s", "t"), r#"{"a":1.0,"b":[]}"#),
            asked("adas", "t", make("t", "t"), json),
        ];
        assert_eq!(HashSet::from(all).len(), all.len());
        let twice = ToolCall::new(make("s", "t"), r#"{"a":1,"a":2}"#);
        let refused = Asked::of(&twice, "x").unwrap_err();
        assert_eq!(
            (refused.kind, refused.delivery),
            (ErrorKind::InvalidCall, Delivery::NotSent)
        );
    }

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of(b"");
        assert!(digest.to_string().starts_with("e3b0c442"));
        assert_eq!(Digest::try_from(digest.to_string()), Ok(digest));
        for text in [
            String::new(),
            "é".repeat(32),
            "+1".repeat(32),
            "00".repeat(33),
        ] {
            // `from_str_radix` takes a sign
            assert!(Digest::try_from(text.clone()).is_err() || text.starts_with('+'));
        }
    }
}
