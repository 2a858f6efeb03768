//! What happened in the cache, told as it happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{ErrorKind, ReplicaSetId, ToolName};
use tokio::sync::broadcast;

use crate::reason::{BypassReason, Cause, RefusalReason};

/// One thing that happened to a call or to its result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CacheEvent {
    /// The replica set of the tool.
    pub set: ReplicaSetId,
    /// The tool, as its server calls it.
    pub tool: ToolName,
    /// What happened.
    pub what: Happened,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Happened {
    /// A call was answered from the cache.
    Hit,
    /// A call was answered with the result of an identical one that was running.
    Joined,
    /// A read was looked up, not found, and sent.
    Miss,
    /// A call was sent without a look-up.
    Bypassed(BypassReason),
    /// A write was sent: what it may have changed became unreachable.
    Invalidated,
    /// A result was kept.
    Stored {
        /// How many bytes the entry takes.
        bytes: u64,
        /// How long it is served.
        ttl: Duration,
    },
    /// A result was not kept.
    Refused(RefusalReason),
    /// A call was answered from the cache after the end of the entry's lifetime.
    Stale {
        /// How old the entry is.
        age: Duration,
        /// Why it was given all the same.
        reason: StaleReason,
    },
    /// A new result was fetched for one that was served beyond its lifetime.
    Refreshed,
    /// No new result could be fetched for one that was served beyond its lifetime; the word says
    /// why: that of an error, or of a [`RefusalReason`].
    RefreshFailed(&'static str),
    /// An entry was dropped.
    Evicted {
        /// Why.
        cause: Cause,
        /// How many bytes it took.
        bytes: u64,
    },
}

/// Why an answer was given beyond its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StaleReason {
    /// The server failed so.
    Failed(ErrorKind),
    /// A new one is being fetched.
    Revalidating,
}

impl StaleReason {
    /// Returns the word used in the answer's `_meta`: the error's, or `revalidating`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed(kind) => kind.as_str(),
            Self::Revalidating => "revalidating",
        }
    }
}

/// The events of one cache. A listener that does not keep up loses the oldest; no call waits for
/// one.
#[derive(Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<CacheEvent>,
    /// Whether anybody ever listened: asking the channel would take a lock on every hit.
    heard: AtomicBool,
}

/// How many events wait for a slow listener.
const WAITING: usize = 1024;

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(WAITING),
            heard: AtomicBool::new(false),
        }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<CacheEvent> {
        let listener = self.sender.subscribe();
        self.heard.store(true, Ordering::Release);
        listener
    }

    pub(crate) fn tell(
        &self,
        set: &ReplicaSetId,
        tool: &ToolName,
        what: impl FnOnce() -> Happened,
    ) {
        if !self.heard.load(Ordering::Relaxed) {
            return;
        }
        let event = CacheEvent {
            set: set.clone(),
            tool: tool.clone(),
            what: what(),
        };
        // the last listener may have left
        if self.sender.send(event).is_err() {
            self.heard.store(false, Ordering::Relaxed);
        }
    }
}
