//! What the cache would do with a call, without doing it.

use std::time::Duration;

use callward_core::{CacheRule, CacheStatus, Lifetime, ToolCall};
use tokio::time::Instant;

use crate::fresh::Gate;
use crate::key::Role;
use crate::reason::BypassReason;
use crate::scope::epochs;
use crate::shared::Shared;
use crate::store::Entry;
use crate::tools::Version;

/// What the cache would do with a call that came now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foresight {
    /// What it would do. A read that others make at the same time may join them instead.
    pub status: CacheStatus,
    /// Why the call would be sent without a look-up, if it would.
    pub bypass: Option<BypassReason>,
    /// How old the answer is that it would get from the cache, if it would.
    pub age: Option<Duration>,
    /// What the result depends on, or what the call may change, as the operator says it.
    pub scope: Option<String>,
}

/// Which way a call goes.
pub(crate) enum Way {
    Pass(BypassReason),
    Read {
        ttl: Duration,
        lifetime: Lifetime,
    },
    /// The repeat of an idempotent write may be answered.
    Rewrite {
        ttl: Duration,
        lifetime: Lifetime,
    },
    Write,
}

impl Way {
    /// Decides by the plan.
    #[inline]
    pub(crate) fn of(shared: &Shared, call: &ToolCall) -> Self {
        if !shared.config.enabled {
            return Self::Pass(BypassReason::Disabled);
        }
        match call.plan().cache {
            CacheRule::Bypass => Self::Pass(BypassReason::Plan),
            CacheRule::Store { .. } if call.pin().is_some() => Self::Pass(BypassReason::Pinned),
            CacheRule::Store { ttl, lifetime } => Self::Read { ttl, lifetime },
            CacheRule::KeepOwn { ttl, lifetime }
                if shared.config.idempotent_writes && call.pin().is_none() =>
            {
                let ttl = match lifetime {
                    Lifetime::Learned(_) => ttl.min(shared.config.burst),
                    _ => ttl,
                };
                Self::Rewrite { ttl, lifetime }
            }
            // a rule this crate does not know yet may stand for a write
            _ => Self::Write,
        }
    }
}

impl Foresight {
    /// Looks at what is kept. Nothing is counted.
    pub(crate) fn of(shared: &Shared, version: &Version, call: &ToolCall) -> Self {
        let footprint = &version.footprint;
        match Way::of(shared, call) {
            Way::Pass(reason) => Self::bypass(reason),
            Way::Write => Self::told(CacheStatus::Invalidated, footprint.writes()),
            Way::Read { lifetime, .. } => match find(shared, version, call, Role::Read, lifetime) {
                Err(reason) => Self::bypass(reason),
                Ok(Some(age)) => Self::hit(age),
                Ok(None) => Self::told(CacheStatus::Miss, footprint.reads()),
            },
            Way::Rewrite { lifetime, .. } => {
                match find(shared, version, call, Role::Write, lifetime) {
                    Ok(Some(age)) => Self::hit(age),
                    _ => Self::told(CacheStatus::Invalidated, footprint.writes()),
                }
            }
        }
    }

    const fn bypass(reason: BypassReason) -> Self {
        Self {
            status: CacheStatus::Bypass,
            bypass: Some(reason),
            age: None,
            scope: None,
        }
    }

    const fn hit(age: Duration) -> Self {
        Self {
            status: CacheStatus::Hit,
            bypass: None,
            age: Some(age),
            scope: None,
        }
    }

    const fn told(status: CacheStatus, scope: String) -> Self {
        Self {
            status,
            bypass: None,
            age: None,
            scope: Some(scope),
        }
    }
}

/// Returns how old the kept answer is that the call would get.
fn find(
    shared: &Shared,
    version: &Version,
    call: &ToolCall,
    role: Role,
    lifetime: Lifetime,
) -> Result<Option<Duration>, BypassReason> {
    let now = Instant::now();
    let moment = shared.scopes.at(now);
    let epochs = match role {
        Role::Read => epochs(&version.footprint.read(&shared.scopes, call), moment)?,
        Role::Write => epochs(&version.footprint.rewrite(&shared.scopes, call), moment)?,
    };
    let identity = shared.keys.identify(version.word(role), call, role);
    let identity = identity.map_err(|_| BypassReason::Arguments)?;
    let key = shared.key(&identity, &epochs);
    let gate = match role {
        Role::Read => Gate::of_read(lifetime, shared, version, call, &identity),
        Role::Write => Gate::of_write(lifetime, shared, call),
    };
    let is_served =
        |entry: &Entry| entry.is_fresh(now) && gate.would_serve(shared, key, entry.made(), now);
    let entry = shared.store.peek(key).filter(is_served);
    Ok(entry.map(|entry| entry.age(now)))
}
