//! What makes two calls the same call.

use std::hash::{BuildHasher, RandomState};

use callward_core::{Caller, FingerprintKey, Tool};

use crate::WithoutSession;

/// The secrets that calls and sessions are hashed under: who chooses arguments cannot choose what they
/// meet.
#[derive(Debug)]
pub(crate) struct Keys {
    sessions: RandomState,
    calls: FingerprintKey,
}

impl Keys {
    pub(crate) fn new() -> Self {
        // std seeds each state from the system's random source
        let word = || RandomState::new().hash_one(0_u8);
        Self {
            sessions: RandomState::new(),
            calls: FingerprintKey::new(word(), word()),
        }
    }

    /// Returns what stands for the caller's session.
    pub(crate) fn session(&self, caller: &Caller) -> u64 {
        let session = caller.session.as_ref().map(|session| session.as_str());
        // the principal too: nobody gets at another one's failures by guessing his session
        self.sessions.hash_one((caller.principal.as_str(), session))
    }

    /// Returns what stands for one call of a session: the same for all spellings of its arguments.
    pub(crate) fn call(&self, session: u64, tool: &Tool, arguments: &[u8]) -> u128 {
        let arguments = self
            .calls
            .json(arguments)
            // read in two ways, or not at all: the bytes themselves then
            .unwrap_or_else(|_| self.calls.bytes(arguments));
        let word = |name: &str| self.calls.bytes(name.as_bytes()).as_u128();
        let (set, tool) = (word(tool.set().as_str()), word(tool.name().as_str()));
        self.calls
            .combine(&[u128::from(session), set, tool, arguments.as_u128()])
            .as_u128()
    }
}

/// Says whether a caller's failures are counted.
pub(crate) fn is_counted(caller: &Caller, without: WithoutSession) -> bool {
    caller.session.is_some() || without == WithoutSession::ByPrincipal
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use callward_core::{Principal, SessionId};
    use callward_testkit::tool;

    use super::*;

    #[test]
    fn spellings_of_one_call_meet_and_nothing_else_does() {
        let keys = Keys::new();
        let caller = |who: &str, session: Option<&str>| {
            let caller = Caller::new(Principal::new(who));
            match session {
                Some(session) => caller.with_session(SessionId::new(session)),
                None => caller,
            }
        };
        let key = |caller: Caller, set: &str, name: &str, arguments: &str| {
            let tool = tool(name).set(set).build();
            keys.call(keys.session(&caller), &tool, arguments.as_bytes())
        };
        let ada = || caller("ada", Some("1"));
        let one = key(ada(), "s", "t", r#"{"a":1,"b":[]}"#);
        assert_eq!(one, key(ada(), "s", "t", r#"{ "b" : [], "a" : 1 }"#));
        let all = [
            one,
            key(ada(), "s", "t", r#"{"a":2,"b":[]}"#),
            key(ada(), "s", "t2", r#"{"a":1,"b":[]}"#),
            key(ada(), "s2", "t", r#"{"a":1,"b":[]}"#),
            key(caller("ada", Some("2")), "s", "t", r#"{"a":1,"b":[]}"#),
            key(caller("ada", None), "s", "t", r#"{"a":1,"b":[]}"#),
            key(caller("eve", Some("1")), "s", "t", r#"{"a":1,"b":[]}"#),
            // each reader may take another one of the two
            key(ada(), "s", "t", r#"{"a":1,"a":2}"#),
            key(ada(), "s", "t", r#"{"a":2,"a":1}"#),
            key(ada(), "s", "t", "not JSON"),
        ];
        assert_eq!(HashSet::from(all).len(), all.len());
    }
}
