//! Permits of one server or one tool, and the queue for them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use super::{PermitStatus, Shed};

/// Permits, and a bounded queue for them. The semaphore is fair: it serves the queue in order.
#[derive(Debug)]
pub(super) struct Queue {
    permits: Arc<Semaphore>,
    limit: usize,
    max_waiting: usize,
    shed: Shed,
    waiting: AtomicUsize,
    /// With [`Shed::Oldest`], a sender per waiting call, the oldest first. Sheds the call.
    oldest_first: Mutex<VecDeque<oneshot::Sender<()>>>,
    refused: AtomicU64,
    expired: AtomicU64,
}

/// Why a call got no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Full,
    Shed,
    Expired,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the queue is full",
            Self::Shed => "the queue is full, and a newer call took this one's place",
            Self::Expired => "the call's deadline came too close",
        })
    }
}

impl Queue {
    pub(super) fn new(limit: usize, max_waiting: usize, shed: Shed) -> Self {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(limit)),
            limit,
            max_waiting,
            shed,
            waiting: AtomicUsize::new(0),
            oldest_first: Mutex::default(),
            refused: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// Takes a free permit. Released permits go to waiting calls first, so none is overtaken.
    pub(super) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().try_acquire_owned().ok()
    }

    /// Waits for a permit until `latest`.
    pub(super) async fn acquire(
        &self,
        latest: Option<Instant>,
    ) -> Result<OwnedSemaphorePermit, Refused> {
        let result = self.wait(latest).await;
        match result {
            Err(Refused::Full | Refused::Shed) => self.refused.fetch_add(1, Ordering::Relaxed),
            Err(Refused::Expired) => self.expired.fetch_add(1, Ordering::Relaxed),
            Ok(_) => 0,
        };
        result
    }

    async fn wait(&self, latest: Option<Instant>) -> Result<OwnedSemaphorePermit, Refused> {
        let (_waiting, shed) = self.join()?;
        let permit = async {
            tokio::select! {
                biased;
                // the semaphore is never closed
                permit = self.permits.clone().acquire_owned() => permit.map_err(|_| Refused::Full),
                Ok(()) = shed => Err(Refused::Shed),
            }
        };
        match latest {
            None => permit.await,
            Some(latest) => timeout_at(latest, permit)
                .await
                .unwrap_or(Err(Refused::Expired)),
        }
    }

    /// Joins the queue, and sheds the oldest call of a full one if that is the rule.
    fn join(&self) -> Result<(Waiting<'_>, oneshot::Receiver<()>), Refused> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(&self.waiting);
        let (sender, shed) = oneshot::channel();
        if self.shed == Shed::Oldest && self.max_waiting > 0 {
            let mut queue = self.oldest_first.lock();
            queue.retain(|call| !call.is_closed());
            if queue.len() >= self.max_waiting
                && let Some(oldest) = queue.pop_front()
            {
                // it may have left the queue in this moment
                let _left = oldest.send(());
            }
            queue.push_back(sender);
        } else if before >= self.max_waiting {
            return Err(Refused::Full);
        }
        Ok((waiting, shed))
    }

    pub(super) fn status(&self) -> PermitStatus {
        PermitStatus {
            limit: self.limit,
            in_flight: self.limit.saturating_sub(self.permits.available_permits()),
            // a shed call is counted until it is polled
            waiting: self.waiting.load(Ordering::Relaxed).min(self.max_waiting),
            max_waiting: self.max_waiting,
            refused: self.refused.load(Ordering::Relaxed),
            expired: self.expired.load(Ordering::Relaxed),
        }
    }
}

/// A call in the queue, counted until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
