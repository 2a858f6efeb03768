//! Bounds how many long messages of one server are in memory before they are complete, and how many
//! large ones are read at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::DEFAULT_MAX_LINE;
use crate::large;

/// A message that has more bytes is long.
pub(crate) const SHORT: usize = 256 * 1024;
/// The capacity that a long message gets at once, in bytes.
pub(crate) const LONG_SIZE: usize = DEFAULT_MAX_LINE;
/// How many long messages of one server are received at the same time.
const LONG_AT_ONCE: usize = 2;

/// The permits to receive long messages of one server, and to read large ones.
#[derive(Debug, Clone)]
pub(crate) struct LongMessages {
    received: Arc<Semaphore>,
    read: Arc<Semaphore>,
}

impl Default for LongMessages {
    fn default() -> Self {
        Self {
            received: Arc::new(Semaphore::new(LONG_AT_ONCE)),
            read: Arc::new(Semaphore::new(1)),
        }
    }
}

impl LongMessages {
    /// Waits until more may be read of a message that has this many bytes so far. `place` is to be
    /// kept until the message is complete.
    pub(crate) async fn admit(&self, bytes: usize, place: &mut Option<OwnedSemaphorePermit>) {
        if bytes > SHORT && place.is_none() {
            // the semaphore is never closed
            *place = self.received.clone().acquire_owned().await.ok();
        }
    }

    /// Reads a message of this many bytes, a large one [beside](large::read) the calls and after
    /// the others of its server: those of other servers do not wait for it.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        bytes: usize,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        large::read(&self.read, bytes, read).await
    }
}
