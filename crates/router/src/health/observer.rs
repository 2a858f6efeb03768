//! Telling that a server's health changed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use callward_core::{ReplicaSetId, ServerId};
use tracing::{info, warn};

use super::state::{HealthChange, HealthState};
use crate::events::{RouteEvent, RouteEvents};

/// A server whose health changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthUpdate {
    /// Its replica set.
    pub set: ReplicaSetId,
    /// The server.
    pub server: ServerId,
    /// What changed.
    pub change: HealthChange,
}

type Told = dyn Fn(HealthUpdate) + Send + Sync;

/// Who is told, besides those who listen to the pool's events. Shared by all sets of a pool; there is
/// one at most.
#[derive(Clone, Default)]
pub(crate) struct Observer {
    told: Arc<OnceLock<Box<Told>>>,
    events: Arc<RouteEvents>,
}

impl Observer {
    /// Tells the listeners of these events, and nobody else yet.
    pub(crate) fn new(events: Arc<RouteEvents>) -> Self {
        Self {
            told: Arc::default(),
            events,
        }
    }

    /// Sets who is told, unless somebody is; says whether that was so.
    pub(crate) fn set(&self, told: impl Fn(HealthUpdate) + Send + Sync + 'static) -> bool {
        self.told.set(Box::new(told)).is_ok()
    }

    /// Tells, and logs: each change is one event, not one for each call.
    pub(crate) fn tell(&self, set: &ReplicaSetId, server: &ServerId, change: HealthChange) {
        let HealthChange { from, to, reason } = &change;
        if matches!(to, HealthState::Ejected | HealthState::Unreachable) {
            warn!(%server, %set, %from, %to, %reason, "health changed");
        } else {
            info!(%server, %set, %from, %to, %reason, "health changed");
        }
        self.events.tell(|| RouteEvent::HealthUpdate {
            set: set.clone(),
            server: server.clone(),
            from: *from,
            to: *to,
            reason: reason.clone(),
        });
        if let Some(told) = self.told.get() {
            told(HealthUpdate {
                set: set.clone(),
                server: server.clone(),
                change,
            });
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.told.get().is_some();
        f.debug_tuple("Observer").field(&is_set).finish()
    }
}
