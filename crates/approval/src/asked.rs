//! What a call asks to be approved, and what identifies it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use callward_core::refine::Applied;
use callward_core::{
    Approver, Delivery, Effect, ErrorKind, Principal, ReplicaSetId, SafetyLevel, SecurityLevel,
    Tool, ToolCall, ToolError, ToolName,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::canonical::canonical;

/// What identifies a call: the SHA-256 digest of principal, replica set, tool, its definition, and
/// the JSON value of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

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
    /// The SHA-256 digest of the tool's definition: another definition is another request.
    pub definition: Arc<str>,
    /// The arguments that run once approved: JSON, with the members of objects by name, numbers as
    /// they were spelled, and no white space.
    pub arguments: Arc<str>,
    /// The SHA-256 digest of the arguments.
    pub arguments_digest: Arc<str>,
    /// What the plan says that the call may do.
    pub effect: Effect,
    /// How dangerous that is.
    pub safety: SafetyLevel,
    /// The security level of the tool.
    #[serde(default = "public")]
    pub security: SecurityLevel,
    /// Why approval is needed, for a person.
    pub reason: Cow<'static, str>,
    /// Who approves. Default: an operator.
    #[serde(default)]
    pub by: Approver,
    /// The roles, of which an operator that decides must have one. Default: none are needed.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Whether servers may read the arguments in more than one way, so that no grant is for them.
    #[serde(default)]
    pub in_doubt: bool,
}

impl Asked {
    /// The largest arguments that can be approved, in bytes: a person has to read them.
    pub const MAX_ARGUMENT_BYTES: usize = 256 * 1024;

    /// Takes what a call asks, and why.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if the arguments are not JSON, if two parsers may read them
    /// differently, or if they are larger than [`MAX_ARGUMENT_BYTES`](Self::MAX_ARGUMENT_BYTES).
    pub fn of(call: &ToolCall, reason: impl Into<Cow<'static, str>>) -> Result<Self, ToolError> {
        let arguments = Some(call.arguments());
        let arguments = arguments.filter(|raw| raw.len() <= Self::MAX_ARGUMENT_BYTES);
        let arguments = arguments.and_then(canonical).ok_or_else(|| {
            let text = "the call needs approval, and no person can approve its arguments: send \
                        JSON, each member once, at most 256 KiB";
            ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
        })?;
        let (tool, effect) = (call.tool(), call.plan().effect);
        let hints = &tool.resolved_applied(call.applied()).annotations;
        let security = hints.security_level;
        Ok(Self {
            principal: call.caller().principal.clone(),
            set: tool.set().clone(),
            tool: tool.name().clone(),
            definition: definition(tool),
            arguments_digest: digest(arguments.as_bytes()),
            arguments: arguments.into(),
            effect,
            safety: effect.safety_level(),
            security: security.unwrap_or_else(public),
            reason: reason.into(),
            by: Approver::default(),
            roles: Vec::new(),
            in_doubt: matches!(call.applied(), Applied::Strictest(_)),
        })
    }

    /// Returns what identifies the call.
    #[must_use]
    pub fn key(&self) -> Key {
        let names = [
            self.principal.as_str(),
            self.set.as_str(),
            self.tool.as_str(),
        ];
        let mut hash = Sha256::new();
        for part in names
            .into_iter()
            .chain([&*self.definition, &*self.arguments_digest])
        {
            // with its length, so that no two lists of parts are equal
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().into())
    }
}

/// The level of a tool that states none.
const fn public() -> SecurityLevel {
    SecurityLevel::Public
}

/// Returns the digest of a tool's definition. Servers may list its members in another order each
/// time.
pub(crate) fn definition(tool: &Tool) -> Arc<str> {
    let raw = &*tool.definition.raw;
    match canonical(raw) {
        Some(written) => digest(written.as_bytes()),
        None => digest(raw),
    }
}

fn digest(bytes: &[u8]) -> Arc<str> {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let digits = digest.map(|byte| format!("{byte:02x}"));
    digits.concat().into()
}

/// Shows no arguments: they may be secret.
impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Asked");
        shown
            .field("principal", &self.principal)
            .field("tool", &self.tool);
        shown.finish_non_exhaustive()
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
        let asked = |principal: &str, set: &str, tool: Arc<Tool>, json: &str| {
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
}
