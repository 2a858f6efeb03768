//! What makes two calls the same call.

use callward_core::{
    Behind, FingerprintError, FingerprintKey, Principal, SessionId, Tool, ToolCall,
};
use smallvec::{SmallVec, smallvec};

use crate::spelling::Spellings;
use crate::{CacheConfig, Partition};

/// Turns calls into keys, under a secret of this instance: nobody outside can make two calls meet.
#[derive(Debug)]
pub(crate) struct Keyring {
    secret: FingerprintKey,
    spellings: Spellings,
    partition: Partition,
}

impl Keyring {
    pub(crate) fn new(config: &CacheConfig, secret: (u64, u64)) -> Self {
        let (first, second) = match config.key_seed {
            None => secret,
            Some(seed) => (seed, !seed),
        };
        Self {
            secret: FingerprintKey::new(first, second),
            spellings: Spellings::for_bytes(config.max_bytes),
            partition: config.partition,
        }
    }

    /// Returns what stands for a tool in a role: its replica set, its name and its definition.
    pub(crate) fn tool(&self, tool: &Tool, role: Role) -> ToolWord {
        let set = self.secret.bytes(tool.set().as_str().as_bytes());
        let name = self.secret.bytes(tool.name().as_str().as_bytes());
        let digest = tool.digest().as_u128();
        let parts = [set.as_u128(), name.as_u128(), digest, role as u128];
        let word = self.secret.combine(&parts).as_u128();
        ToolWord {
            word,
            behind: self.secret.behind(word),
        }
    }

    /// Says what call this is, whenever it is made. `tool` stands for the tool in this role.
    #[inline]
    pub(crate) fn identify(
        &self,
        tool: &ToolWord,
        call: &ToolCall,
        role: Role,
    ) -> Result<Identity, FingerprintError> {
        let owner = call.owner();
        let shared = self.partition == Partition::Shared
            && role == Role::Read
            && owner.is_none()
            && !call.plan().limits.restricted;
        let principal = (!shared).then(|| self.principal(&call.caller().principal));
        let whom = match owner.and_then(|owner| owner.session) {
            None => principal.unwrap_or(EVERYBODY),
            Some(session) => self.session(principal.unwrap_or(EVERYBODY), session),
        };
        let digest = self
            .spellings
            .digest(&self.secret, tool, whom, call.arguments())?;
        Ok(Identity {
            digest: digest.as_u128(),
            principal,
        })
    }

    /// Returns what stands for a principal: the number of a short name, whose highest byte is at most 15,
    /// or the digest of a long one.
    #[inline]
    pub(crate) fn principal(&self, principal: &Principal) -> u128 {
        principal.as_number().unwrap_or_else(|| {
            let name = principal.as_str().as_bytes();
            self.secret.bytes(name).as_u128() | 0xff << 120
        })
    }

    /// Returns what stands for a session of a principal, whose instance keeps state of its own.
    fn session(&self, principal: u128, session: &SessionId) -> u128 {
        let session = self.secret.bytes(session.as_str().as_bytes()).as_u128();
        let both = self.secret.combine(&[principal, session]).as_u128();
        both & !(0xff << 120) | SESSIONS
    }

    /// Returns the key of the call if it is made under these epochs of what it depends on. How many
    /// there are depends on the identity alone.
    #[inline]
    pub(crate) fn key(&self, identity: &Identity, principal_epoch: u64, epochs: &[u64]) -> u128 {
        match (epochs, principal_epoch) {
            // The digest is secret and spread evenly; so is it whatever is added to it, and two
            // epochs are as many bits as there are.
            ([own, other], 0) => identity.digest ^ (u128::from(*own) << 64 | u128::from(*other)),
            _ => self.key_of_many(identity, principal_epoch, epochs),
        }
    }

    #[inline(never)]
    fn key_of_many(&self, identity: &Identity, principal_epoch: u64, epochs: &[u64]) -> u128 {
        let count = epochs.len() as u128;
        let mut parts: SmallVec<[u128; 8]> =
            smallvec![identity.digest, count << 64 | u128::from(principal_epoch)];
        parts.extend(epochs.iter().copied().map(u128::from));
        self.secret.combine(&parts).as_u128()
    }
}

/// Stands for everybody where another principal would stand: the highest byte of a name is its length,
/// at most 15, and that of a digest 255.
const EVERYBODY: u128 = 0xfe << 120;

/// The highest byte of what stands for a session.
const SESSIONS: u128 = 0xfd << 120;

/// What stands for a tool in a role.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolWord {
    pub(crate) word: u128,
    /// The secret with the word taken in.
    pub(crate) behind: Behind,
}

/// Whose entry it is. A tool that was a read yesterday and is a write today must not find an old
/// entry and take it for its own effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Read = 0,
    Write = 1,
}

/// Everything that tells one call from another, but the epochs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// Of tool, arguments and principal.
    digest: u128,
    /// `None` if the result is for everybody.
    pub(crate) principal: Option<u128>,
}

impl Identity {
    /// Returns what stands for the call in evidence, whatever the epochs.
    pub(crate) const fn evidence_key(&self) -> u128 {
        self.digest
    }

    /// Says whether the result is for everybody.
    pub(crate) const fn is_shared(&self) -> bool {
        self.principal.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callward_core::{Caller, Instances, Principal, SessionId, Tool};
    use callward_testkit::{call, tool};
    use serde_json::json;

    use super::*;
    use crate::evidence::Evidences;

    fn by(who: &str, tool: &Arc<Tool>) -> ToolCall {
        call(tool, json!({"id": 1})).with_caller(Arc::new(Caller::new(Principal::new(who))))
    }

    fn ring(partition: Partition) -> Keyring {
        let config = CacheConfig {
            partition,
            ..CacheConfig::default()
        };
        Keyring::new(&config, Evidences::new(0.01).secret())
    }

    fn key(ring: &Keyring, call: &ToolCall, role: Role, epochs: &[u64]) -> u128 {
        let identity = ring.identify(&ring.tool(call.tool(), role), call, role);
        ring.key(&identity.unwrap(), 0, epochs)
    }

    #[test]
    fn each_part_of_the_identity_tells_calls_apart() {
        let ring = ring(Partition::Principal);
        let key = |call: &ToolCall, role, epochs: &[u64]| key(&ring, call, role, epochs);
        let get = tool("get").read_only().build();
        let redefined = tool("get")
            .hint(|hints| hints.title = Some("t".into()))
            .build();
        let elsewhere = tool("get").set("other").read_only().build();
        let got = tool("got").read_only().build();
        let mine = by("a", &get);
        let identity = ring
            .identify(&ring.tool(&get, Role::Read), &mine, Role::Read)
            .unwrap();
        let mut keys = vec![
            key(&mine, Role::Read, &[0]),
            key(&by("a", &elsewhere), Role::Read, &[0]),
            key(&mine, Role::Read, &[1]),
            key(&mine, Role::Read, &[0, 0]),
            key(&mine, Role::Read, &[1, 0]),
            key(&mine, Role::Read, &[0, 1]),
            key(&mine, Role::Read, &[0, 0, 1]),
            key(&mine, Role::Write, &[0]),
            key(&by("b", &get), Role::Read, &[0]),
            key(&by("a", &got), Role::Read, &[0]),
            key(&by("a", &redefined), Role::Read, &[0]),
            key(&call(&get, json!({"id": 2})), Role::Read, &[0]),
            ring.key(&identity, 1, &[0]),
        ];
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn principals_are_told_apart_however_long_their_names_are() {
        let ring = ring(Partition::Principal);
        let mut names: Vec<String> = (0..40).map(|length| "a".repeat(length)).collect();
        names.extend(["\0", "\0\0", "a\0", "aaaaaaaaaaaaaaa\u{f}"].map(str::to_owned));
        let mut words: Vec<u128> = names
            .iter()
            .map(|name| ring.principal(&Principal::new(name.as_str())))
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), names.len());
    }

    #[test]
    fn only_unrestricted_reads_are_shared() {
        let ring = ring(Partition::Shared);
        let meets = |tool: &Arc<Tool>, role| {
            let key = |who: &str| key(&ring, &by(who, tool), role, &[0]);
            key("a") == key("b")
        };
        let get = tool("get").read_only().build();
        let secret = tool("get")
            .read_only()
            .hint(|hints| hints.security_level = Some(callward_core::SecurityLevel::Restricted))
            .build();
        assert!(meets(&get, Role::Read));
        assert!(!meets(&get, Role::Write));
        assert!(!meets(&secret, Role::Read));
    }

    #[test]
    fn results_of_an_instance_are_its_owners() {
        let caller = |who: &str, session: &str| {
            let caller = Caller::new(Principal::new(who));
            Arc::new(caller.with_session(SessionId::new(session)))
        };
        for partition in [Partition::Principal, Partition::Shared] {
            let ring = ring(partition);
            let of = |instances| {
                let get = Tool::clone(&tool("get").read_only().build());
                let get = Arc::new(get.with_instances(instances));
                let key = |who, session| {
                    let call = call(&get, json!({})).with_caller(caller(who, session));
                    key(&ring, &call, Role::Read, &[0])
                };
                [key("a", "1"), key("a", "2"), key("b", "1")]
            };
            let [first, second, other] = of(Instances::Session);
            assert!(first != second && first != other && second != other);
            let [first, second, other] = of(Instances::Principal);
            assert!(first == second && first != other);
            let [first, second, other] = of(Instances::Shared);
            assert!(first == second);
            assert_eq!(first == other, partition == Partition::Shared);
        }
    }

    #[test]
    fn another_instance_has_other_keys() {
        let call = by("a", &tool("get").build());
        let new = || key(&ring(Partition::Principal), &call, Role::Read, &[0]);
        assert_ne!(new(), new());
    }
}
