//! How long an answer is kept: by the plan, the server and the config.

use std::time::Duration;

use callward_core::{Freshness, ToolOutput};

use super::Gate;
use crate::reason::RefusalReason;
use crate::route::Lookup;
use crate::shared::{Shared, unshareable};

/// How long an answer is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// How long it is served as it is.
    pub(crate) ttl: Duration,
    /// How much longer it may be served with a mark.
    pub(crate) stale: Duration,
    /// Whether the server stated it.
    pub(crate) stated: bool,
}

impl Shared {
    /// Returns how long an answer may be given to other calls, or why it may not. `asked`: the
    /// client was asked something for it.
    pub(crate) fn expiry(
        &self,
        output: &ToolOutput,
        lookup: &Lookup,
        asked: bool,
    ) -> Result<Expiry, RefusalReason> {
        if let Some(reason) = unshareable(output) {
            return Err(reason);
        }
        if asked {
            return Err(RefusalReason::Asked);
        }
        let (identity, planned) = (&lookup.identity, lookup.ttl);
        let mut said = output.freshness();
        if matches!(lookup.gate, Gate::Fixed { stated: true }) {
            if said.private && identity.is_shared() {
                return Err(RefusalReason::NoStore);
            }
            said = Freshness::default();
        }
        // what is not kept at all may still be shared with the followers of its flight
        let shortest = planned.max(Duration::from_nanos(1));
        let ttl = said.lifetime(shortest, identity.is_shared());
        let stale = (self.config.stale_while_revalidate).max(self.config.stale_if_error);
        Ok(Expiry {
            ttl: ttl.ok_or(RefusalReason::NoStore)?.min(planned),
            stale: said.stale_window(stale, identity.is_shared()),
            stated: said.max_age.is_some(),
        })
    }
}
