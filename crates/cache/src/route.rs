//! How the cache treats a call: by its plan, its arguments and the config.

use std::time::Duration;

use callward_core::{CacheRule, ToolCall};
use tokio::time::Instant;

use crate::fresh::Gate;
use crate::key::{EntryKind, Identity};
use crate::reason::BypassReason;
use crate::scope::{ScopeSet, epochs};
use crate::shared::Shared;
use crate::tools::Version;

/// How the cache treats a call.
#[derive(Debug)]
pub(crate) enum Route {
    /// It is sent without a look-up.
    Bypass(BypassReason),
    /// It is a read or the repeat of an idempotent write, which may be answered.
    LookUp(Lookup),
    Write,
}

/// What a look-up needs of a call, whatever the epochs.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub(crate) kind: EntryKind,
    pub(crate) identity: Identity,
    pub(crate) gate: Gate,
    /// The longest lifetime that the plan allows.
    pub(crate) ttl: Duration,
}

impl Route {
    pub(crate) fn of(shared: &Shared, version: &Version, call: &ToolCall) -> Self {
        if !shared.config.enabled {
            return Self::Bypass(BypassReason::Disabled);
        }
        // its answer belongs to this call alone
        let alone = match call.round {
            Some(_) => Some(BypassReason::Round),
            None => call.pin.as_ref().map(|_| BypassReason::Pinned),
        };
        let (kind, ttl, lifetime) = match (call.plan().cache, alone) {
            (CacheRule::Bypass, _) => return Self::Bypass(BypassReason::Plan),
            (CacheRule::Store { .. }, Some(reason)) => return Self::Bypass(reason),
            (CacheRule::Store { ttl, lifetime }, None) => (EntryKind::Read, ttl, lifetime),
            (CacheRule::KeepOwn { ttl, lifetime }, None) if shared.config.idempotent_writes => {
                (EntryKind::Write, ttl, lifetime)
            }
            // a rule this crate does not know yet may stand for a write
            _ => return Self::Write,
        };
        let Some(identity) = shared.keys.identify(version.digest, call, kind) else {
            return match kind {
                EntryKind::Read => Self::Bypass(BypassReason::Arguments),
                EntryKind::Write => Self::Write,
            };
        };
        let gate = Gate::new(kind, lifetime, &identity, shared, call);
        let burst = shared.config.burst;
        Self::LookUp(Lookup {
            kind,
            identity,
            ttl: match gate {
                Gate::Fixed { .. } => ttl,
                // kept for the burst window at least; the gate decides how long it is served
                Gate::Learned(_) => ttl.max(burst),
                Gate::Burst { .. } => ttl.min(burst),
            },
            gate,
        })
    }
}

impl Lookup {
    /// Returns the scopes that the answer depends on.
    pub(crate) fn scopes(&self, shared: &Shared, version: &Version, call: &ToolCall) -> ScopeSet {
        match self.kind {
            EntryKind::Read => version.access.read_set(&shared.scopes, call),
            EntryKind::Write => version.access.repeat_set(&shared.scopes, call),
        }
    }

    /// Returns the key of the call at this moment.
    ///
    /// # Errors
    ///
    /// A write to what the answer depends on is in flight, or may still land.
    pub(crate) fn key(
        &self,
        shared: &Shared,
        version: &Version,
        call: &ToolCall,
        now: Instant,
    ) -> Result<u128, BypassReason> {
        let scopes = self.scopes(shared, version, call);
        let epochs = epochs(&scopes, shared.scopes.at(now))?;
        Ok(shared.key(&self.identity, &epochs))
    }
}
