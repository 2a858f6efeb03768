//! Telling the router whether a server is there.

use std::sync::Arc;

use callward_core::{ReplicaSetId, ServerId};
use callward_router::{Pool, Presence, Witness};

use crate::order::Guarded;

/// Tells the router whether one server is there, on behalf of whoever finds out.
#[derive(Debug, Clone)]
pub(crate) struct Herald {
    pool: Arc<Pool<Guarded>>,
    set: ReplicaSetId,
    server: ServerId,
}

impl Herald {
    pub(crate) const fn new(pool: Arc<Pool<Guarded>>, set: ReplicaSetId, server: ServerId) -> Self {
        Self { pool, set, server }
    }

    pub(crate) fn tell(&self, who: Witness, presence: Presence) {
        if let Err(unknown) = self.pool.set_health(&self.server, who, presence) {
            // it was taken out of its set a moment ago
            tracing::debug!(%unknown, ?who, ?presence, "nobody asks for its health");
        }
    }

    /// Says whether the server has calls to answer.
    pub(crate) fn is_busy(&self) -> bool {
        let set = self.pool.get(&self.set);
        let in_flight = set.and_then(|set| Some(set.endpoint(&self.server)?.in_flight()));
        in_flight.is_some_and(|calls| calls > 0)
    }
}
