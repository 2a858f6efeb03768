//! The server of an attempt, readable while the attempt runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ServerId;

/// The server that a router chose for an attempt, readable while the attempt runs. Clones share it.
///
/// An error names its server, and a [`CallRecord`](crate::CallRecord) the one chosen last. A layer
/// that makes two attempts of a call at a time needs to know both servers.
#[derive(Clone, Default)]
pub struct ChosenServer(Arc<Mutex<Option<ServerId>>>);

impl ChosenServer {
    /// Writes which server gets the attempt. Later ones replace it: a router goes on to the next
    /// where one refuses.
    pub fn set(&self, server: ServerId) {
        *self.lock() = Some(server);
    }

    /// Returns the server that has the attempt. `None` if it has not been given to a server yet, or
    /// if no layer of the stack records it.
    pub fn get(&self) -> Option<ServerId> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ServerId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ChosenServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChosenServer").field(&self.get()).finish()
    }
}
