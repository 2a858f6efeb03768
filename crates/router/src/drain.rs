//! A drained server, and the end of its calls.

use std::fmt;
use std::sync::Arc;

use crate::state::ServerState;

/// A server that gets no new calls since it was drained or removed. Calls that were given to it
/// before run to their end, those too that wait for a place or for their turn there.
///
/// Dropping it changes nothing.
#[derive(Clone)]
pub struct Draining(Arc<ServerState>);

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Drained {
    /// Nothing is in flight any more.
    Idle,
    /// The server gets calls again, before the last one ended.
    Undrained,
}

impl Draining {
    pub(crate) const fn new(state: Arc<ServerState>) -> Self {
        Self(state)
    }

    /// Returns how many calls have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    /// Waits until the last call has ended. The calls' own timeouts and deadlines bound how long
    /// that is. Dropping the future leaves the server drained.
    pub async fn finished(&self) -> Drained {
        self.0.drained().await
    }
}

impl fmt::Debug for Draining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draining")
            .field("in_flight", &self.in_flight())
            .finish()
    }
}
