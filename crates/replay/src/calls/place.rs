//! Which calls meet: the state a call works on, on whose behalf, and what makes two the same.

use callward_core::FingerprintKey;

use super::Sessions;
use crate::trace::RecordedCall;

/// Where a call stands. Equal numbers meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The state that calls read and write.
    pub(crate) world: u128,
    /// The principal; meaningful within the world.
    pub(crate) principal: u128,
    /// The conversation.
    pub(crate) session: u128,
    /// Calls with the same clock have comparable times.
    pub(crate) clock: u128,
    /// World, principal, tool and arguments.
    pub(crate) key: u128,
}

impl Place {
    pub(crate) fn of(call: &RecordedCall, sessions: Sessions) -> Self {
        // nothing here is secret
        let hash = FingerprintKey::fixed();
        let text = |text: &str| hash.bytes(text.as_bytes());
        let trace = text(&call.trace);
        let session = hash.combine(&[0, trace, text(&call.session)]);
        let shared = hash.combine(&[1, trace]);
        let set = call.set.as_deref();
        let world = match (set, sessions) {
            (Some(set), _) => hash.combine(&[2, trace, text(set)]),
            (None, Sessions::Apart) => session,
            (None, Sessions::Shared) => shared,
        };
        let principal = match (call.principal.as_deref(), sessions) {
            (_, Sessions::Shared) => shared,
            (Some(principal), Sessions::Apart) => hash.combine(&[3, trace, text(principal)]),
            (None, Sessions::Apart) => session,
        };
        let raw = call.arguments().as_bytes();
        // arguments without a structural hash are compared as text
        let arguments = hash.json(raw).unwrap_or_else(|| hash.bytes(raw));
        let key = [world, principal, text(call.tool.as_str()), arguments];
        Self {
            world,
            principal,
            session,
            clock: if world == session { session } else { shared },
            key: hash.combine(&key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: &str, sessions: Sessions) -> Place {
        let call = RecordedCall::from_line(line.as_bytes()).unwrap();
        Place::of(&call, sessions)
    }

    #[test]
    fn sessions_are_apart_by_default() {
        let one = r#"{"session":"1","tool":"a","args":{"x":1,"y":2}}"#;
        let same = r#"{"session":"1","tool":"a","args":{"y":2, "x":1}}"#;
        let other = r#"{"session":"2","tool":"a","args":{"x":1,"y":2}}"#;
        let elsewhere = r#"{"trace":"t","session":"1","tool":"a","args":{"x":1,"y":2}}"#;
        let apart = |line| place(line, Sessions::Apart);
        assert_eq!(apart(one), apart(same));
        assert_ne!(apart(one).world, apart(other).world);
        assert_ne!(apart(one).principal, apart(other).principal);
        let shared = |line| place(line, Sessions::Shared).key;
        assert_eq!(shared(one), shared(other));
        assert_ne!(shared(one), shared(elsewhere));
    }
}
