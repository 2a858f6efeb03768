//! The key of a call: what makes two calls equal.

use callward_core::{FingerprintKey, Principal, Tool, ToolCall};
use smallvec::{SmallVec, smallvec};

use crate::{CacheConfig, Partition};

/// Turns calls into keys, under a secret of this cache: a client cannot make two calls meet.
#[derive(Debug)]
pub(crate) struct Keyring {
    secret: FingerprintKey,
    partition: Partition,
}

/// What an entry was made by. A tool that was a read yesterday and is a write today must not take
/// an old entry for its own effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Read = 0,
    Write = 1,
}

/// Everything that distinguishes one call from another, except the epochs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// Of tool, arguments, `_meta`, principal, and the client's capabilities.
    pub(crate) digest: u128,
    /// `None` if all principals share the result.
    pub(crate) principal: Option<u128>,
}

impl Keyring {
    pub(crate) fn new(config: &CacheConfig, secret: (u64, u64)) -> Self {
        let (first, second) = match config.key_seed {
            None => secret,
            Some(seed) => (seed, !seed),
        };
        Self {
            secret: FingerprintKey::new(first, second),
            partition: config.partition,
        }
    }

    /// Returns the digest of a tool: of its replica set, its name and its definition.
    pub(crate) fn tool(&self, tool: &Tool) -> u128 {
        let set = self.digest(tool.set().as_str());
        let name = self.digest(tool.name().as_str());
        let parts = [set, name, tool.digest()];
        self.secret.combine(&parts)
    }

    /// Returns the identity of a call of the tool with this digest; `None` if two parsers may read
    /// the arguments differently.
    pub(crate) fn identify(
        &self,
        tool: u128,
        call: &ToolCall,
        kind: EntryKind,
    ) -> Option<Identity> {
        let owner = call.owner();
        let shared = self.partition == Partition::Shared
            && kind == EntryKind::Read
            && owner.is_none()
            && !call.plan().limits.restricted;
        let principal = (!shared).then(|| self.principal(&call.caller().principal));
        let whom = match owner.and_then(|owner| owner.session) {
            Some(session) => {
                let session = self.digest(session.as_str());
                self.secret.combine(&[principal.unwrap_or(0), session])
            }
            None => principal.unwrap_or(0),
        };
        // both are secret hashes, so what is added to one makes no two calls meet
        let what = tool.wrapping_add(kind as u128);
        let mut digest = self.secret.json_behind([what, whom], call.arguments())?;
        if let Some(meta) = call.meta.as_ref().and_then(|meta| meta.compared()) {
            digest = self.secret.json_behind([digest, 0], meta)?;
        }
        if !call.capabilities.is_empty() {
            let declared = u128::from(call.capabilities.bits());
            digest = self.secret.combine(&[digest, declared]);
        }
        Some(Identity { digest, principal })
    }

    pub(crate) fn principal(&self, principal: &Principal) -> u128 {
        self.digest(principal.as_str())
    }

    /// Returns the key of the call under these epochs.
    pub(crate) fn key(&self, identity: &Identity, principal_epoch: u64, epochs: &[u64]) -> u128 {
        // two epochs are as many bits as the digest has, and no two pairs give the same key
        if let ([own, other], 0) = (epochs, principal_epoch) {
            return identity.digest ^ (u128::from(*own) << 64 | u128::from(*other));
        }
        let mut parts: SmallVec<[u128; 8]> = smallvec![identity.digest, principal_epoch.into()];
        parts.extend(epochs.iter().copied().map(u128::from));
        self.secret.combine(&parts)
    }

    fn digest(&self, text: &str) -> u128 {
        self.secret.bytes(text.as_bytes())
    }
}

impl Identity {
    /// Returns `true` if all principals share the result.
    pub(crate) const fn is_shared(&self) -> bool {
        self.principal.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callward_core::{Caller, ClientCapabilities, Principal, Tool};
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
        Keyring::new(&config, Evidences::new(0.01).secret)
    }

    fn key(ring: &Keyring, call: &ToolCall, kind: EntryKind, epochs: &[u64]) -> u128 {
        let identity = ring.identify(ring.tool(call.tool()), call, kind);
        ring.key(&identity.unwrap(), 0, epochs)
    }

    #[test]
    fn each_part_of_the_identity_changes_the_key() {
        let ring = ring(Partition::Principal);
        let key = |call: &ToolCall, kind, epochs: &[u64]| key(&ring, call, kind, epochs);
        let get = tool("get").read_only().build();
        let redefined = tool("get")
            .hint(|hints| hints.title = Some("t".into()))
            .build();
        let elsewhere = tool("get").set("other").read_only().build();
        let got = tool("got").read_only().build();
        let mine = by("a", &get);
        let identity = ring
            .identify(ring.tool(&get), &mine, EntryKind::Read)
            .unwrap();
        let mut keys = vec![
            key(&mine, EntryKind::Read, &[0]),
            key(&by("a", &elsewhere), EntryKind::Read, &[0]),
            key(&mine, EntryKind::Read, &[1]),
            key(&mine, EntryKind::Read, &[0, 0]),
            key(&mine, EntryKind::Read, &[1, 0]),
            key(&mine, EntryKind::Read, &[0, 1]),
            key(&mine, EntryKind::Read, &[0, 0, 1]),
            key(&mine, EntryKind::Write, &[0]),
            key(&by("b", &get), EntryKind::Read, &[0]),
            key(&by("a", &got), EntryKind::Read, &[0]),
            key(&by("a", &redefined), EntryKind::Read, &[0]),
            key(&call(&get, json!({"id": 2})), EntryKind::Read, &[0]),
            ring.key(&identity, 1, &[0]),
        ];
        for declared in [r#"{"roots": {}}"#, r#"{"sampling": {}}"#] {
            let mut call = mine.clone();
            call.context_mut().capabilities = ClientCapabilities::parse(declared.as_bytes());
            let asked = key(&call, EntryKind::Read, &[0]);
            assert_eq!(asked, key(&call.in_background(), EntryKind::Read, &[0]));
            keys.push(asked);
        }
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn another_cache_has_other_keys() {
        let call = by("a", &tool("get").build());
        let new = || key(&ring(Partition::Principal), &call, EntryKind::Read, &[0]);
        assert_ne!(new(), new());
    }
}
