//! What makes two calls the same call.

use std::hash::{BuildHasher, RandomState};

use tollgate_core::{FingerprintError, FingerprintKey, ReplicaSetId, ToolCall};

use crate::Partition;
use crate::spelling::Spellings;

/// Turns calls into keys, under a secret of this instance: nobody outside can make two calls meet.
#[derive(Debug)]
pub(crate) struct Keyring {
    secret: FingerprintKey,
    spellings: Spellings,
    partition: Partition,
}

impl Keyring {
    pub(crate) fn random(partition: Partition) -> Self {
        // std seeds each state from the system's random source
        let word = || RandomState::new().hash_one(0_u8);
        Self {
            secret: FingerprintKey::new(word(), word()),
            spellings: Spellings::default(),
            partition,
        }
    }

    /// Returns the digest of a replica set's name.
    pub(crate) fn set(&self, set: &ReplicaSetId) -> u128 {
        self.secret.bytes(set.as_str().as_bytes()).as_u128()
    }

    /// Says what call this is, whenever it is made.
    pub(crate) fn identify(
        &self,
        set: u128,
        call: &ToolCall,
        role: Role,
    ) -> Result<Identity, FingerprintError> {
        let arguments = self.spellings.fingerprint(&self.secret, call.arguments())?;
        let tool = call.tool();
        let name = self.secret.bytes(tool.name().as_str().as_bytes());
        let shared = self.partition == Partition::Shared
            && role == Role::Read
            && !call.plan().limits.restricted;
        let principal = if shared {
            0
        } else {
            let principal = call.caller().principal.as_str();
            self.secret.bytes(principal.as_bytes()).as_u128()
        };
        Ok(Identity([
            set,
            name.as_u128(),
            tool.digest().as_u128(),
            arguments.as_u128(),
            principal,
            (role as u128) << 1 | u128::from(shared),
        ]))
    }

    /// Returns the key of the call if it is made under this epoch of its scope.
    pub(crate) fn key(&self, identity: &Identity, epoch: u64) -> u128 {
        let [set, name, digest, arguments, principal, role] = identity.0;
        let last = role << 64 | u128::from(epoch);
        let parts = [set, name, digest, arguments, principal, last];
        self.secret.combine(&parts).as_u128()
    }
}

/// Whose entry it is. A tool that was a read yesterday and is a write today must not find an old
/// entry and take it for its own effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Read = 0,
    Write = 1,
}

/// Everything that tells one call from another, but the epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity([u128; 6]);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tollgate_core::{Caller, Principal, Tool};
    use tollgate_testkit::{call, tool};

    use super::*;

    fn by(who: &str, tool: &Arc<Tool>) -> ToolCall {
        call(tool, json!({"id": 1})).with_caller(Arc::new(Caller::new(Principal::new(who))))
    }

    #[test]
    fn each_part_of_the_identity_tells_calls_apart() {
        let ring = Keyring::random(Partition::Principal);
        let key = |set, call: &ToolCall, role, epoch| {
            ring.key(&ring.identify(set, call, role).unwrap(), epoch)
        };
        let get = tool("get").read_only().build();
        let redefined = tool("get")
            .hint(|hints| hints.title = Some("t".into()))
            .build();
        let mut keys = vec![
            key(1, &by("a", &get), Role::Read, 0),
            key(2, &by("a", &get), Role::Read, 0),
            key(1, &by("a", &get), Role::Read, 1),
            key(1, &by("a", &get), Role::Write, 0),
            key(1, &by("b", &get), Role::Read, 0),
            key(1, &by("a", &tool("got").read_only().build()), Role::Read, 0),
            key(1, &by("a", &redefined), Role::Read, 0),
            key(1, &call(&get, json!({"id": 2})), Role::Read, 0),
        ];
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn only_unrestricted_reads_are_shared() {
        let ring = Keyring::random(Partition::Shared);
        let meets = |tool: &Arc<Tool>, role| {
            let key = |who: &str| ring.key(&ring.identify(1, &by(who, tool), role).unwrap(), 0);
            key("a") == key("b")
        };
        let get = tool("get").read_only().build();
        let secret = tool("get")
            .read_only()
            .hint(|hints| hints.security_level = Some(tollgate_core::SecurityLevel::Restricted))
            .build();
        assert!(meets(&get, Role::Read));
        assert!(!meets(&get, Role::Write));
        assert!(!meets(&secret, Role::Read));
    }

    #[test]
    fn another_instance_has_other_keys() {
        let call = by("a", &tool("get").build());
        let key = || {
            let ring = Keyring::random(Partition::Principal);
            ring.key(&ring.identify(1, &call, Role::Read).unwrap(), 0)
        };
        assert_ne!(key(), key());
    }
}
