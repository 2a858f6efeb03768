//! How long an answer is kept, its own word included.

use std::time::Duration;

use callward_core::{Freshness, ToolOutput};

use super::Gate;
use crate::key::Identity;
use crate::reason::RefusalReason;
use crate::shared::{Shared, unshareable};

/// How long an answer is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// How long it is served as it is.
    pub(crate) ttl: Duration,
    /// How much longer it may be served with a mark, for whatever reason.
    pub(crate) stale: Duration,
    /// Whether the server stated it.
    pub(crate) stated: bool,
}

impl Lifetime {
    /// Cuts it to a window, beyond which the answer is not served at all.
    pub(crate) fn within(self, window: Duration) -> Self {
        Self {
            ttl: self.ttl.min(window),
            stale: Duration::ZERO,
            ..self
        }
    }
}

/// How much longer than its lifetime an answer may be served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    pub(super) revalidate: Duration,
    pub(super) error: Duration,
}

impl Shared {
    /// Says how long an answer may be given to other calls where its plan allows `planned`, or why it
    /// may not.
    pub(crate) fn lifetime(
        &self,
        output: &ToolOutput,
        planned: Duration,
        gate: &Gate,
        identity: &Identity,
    ) -> Result<Lifetime, RefusalReason> {
        if let Some(reason) = unshareable(output) {
            return Err(reason);
        }
        if matches!(gate, Gate::Fixed { stated: true }) {
            if output.freshness().private && identity.is_shared() {
                return Err(RefusalReason::NoStore);
            }
            let Windows { revalidate, error } = self.windows_of(&Freshness::SILENT, identity);
            return Ok(Lifetime {
                ttl: planned,
                stale: revalidate.max(error),
                stated: false,
            });
        }
        let said = output.freshness();
        // what is not kept at all may still be shared with those who wait for it now
        let least = planned.max(Duration::from_nanos(1));
        let Some(ttl) = said.lifetime(least, identity.is_shared()) else {
            return Err(RefusalReason::NoStore);
        };
        let ttl = ttl.min(planned);
        let Windows { revalidate, error } = self.windows_of(&said, identity);
        let stale = revalidate.max(error);
        let stated = said.max_age.is_some() || said.shared_max_age.is_some();
        Ok(Lifetime { ttl, stale, stated })
    }

    /// Says how much longer than its lifetime a kept answer may be served.
    pub(super) fn windows(&self, output: &ToolOutput, identity: &Identity) -> Windows {
        self.windows_of(&output.freshness(), identity)
    }

    fn windows_of(&self, said: &Freshness, identity: &Identity) -> Windows {
        let (config, shared) = (&self.config, identity.is_shared());
        Windows {
            revalidate: said.revalidation_window(config.stale_while_revalidate, shared),
            error: said.error_window(config.stale_if_error, shared),
        }
    }
}
