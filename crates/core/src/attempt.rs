//! One attempt of a call.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{ServerId, Watch};

/// The number of an attempt, and the servers that it tries last.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    /// Servers that already failed this call: to be tried only if there is no other.
    pub avoid: Vec<ServerId>,
    /// How long this attempt may take of the time to the call's deadline, if another one would
    /// follow. `None`: the call's deadline alone counts.
    pub share: Option<Share>,
    /// Only servers that are not avoided, are healthy and have a weight: a second attempt that runs
    /// beside the first. If there is none, the attempt fails at once, not sent.
    pub elsewhere_only: bool,
    /// The call passes open breakers: a router keeps reads going to a minimum share of a set.
    pub ignores_open_breakers: bool,
    /// Where to record which server gets this attempt, if a reader needs it while the attempt runs.
    pub chosen: Option<ChosenServer>,
    /// The watcher to notify of the request that is sent for this attempt, if there is one.
    pub watch: Option<Watch>,
}

impl Attempt {
    /// Returns the first attempt.
    pub(crate) const fn first() -> Self {
        Self {
            number: 1,
            avoid: Vec::new(),
            share: None,
            elsewhere_only: false,
            ignores_open_breakers: false,
            chosen: None,
            watch: None,
        }
    }

    /// Turns this attempt into the next one, avoiding the server that failed.
    pub fn advance(&mut self, failed: Option<&ServerId>) {
        if let Some(failed) = failed
            && !self.avoid.contains(failed)
        {
            self.avoid.push(failed.clone());
        }
        *self = Self {
            number: self.number.saturating_add(1),
            avoid: std::mem::take(&mut self.avoid),
            ..Self::first()
        };
    }
}

impl Default for Attempt {
    fn default() -> Self {
        Self::first()
    }
}

/// What an attempt gets of the time to its call's deadline.
pub type Share = Arc<dyn TimeShare>;

/// What an attempt gets of the time to its call's deadline, so that there is some left for another:
/// the layer that makes the attempts of a call knows.
///
/// It counts from the moment the attempt is sent: waiting in a queue uses none of it. When it has
/// passed, the layer that times the attempt asks if another one would follow. Only then the attempt
/// ends; otherwise it would fail without need, and it may go on until the deadline.
pub trait TimeShare: Any + fmt::Debug + Send + Sync {
    /// Returns how long the attempt may take at least, from the moment it is sent.
    fn time(&self) -> Duration;

    /// Asks whether the attempt ends now because another one follows. `left` is the time to the
    /// call's deadline. If so, the attempt has to end: what the other one costs may have been paid.
    fn end(&self, left: Duration) -> bool;

    /// Returns `true` if an attempt was ended this way: it was given less time than it would have
    /// had.
    fn has_ended(&self) -> bool;
}

/// The server that a router chose for an attempt, readable while the attempt runs. Clones share it.
///
/// An error names its server, and a [`CallRecord`](crate::CallRecord) the one chosen last. A layer
/// that makes two attempts of a call at a time needs to know both servers.
#[derive(Debug, Clone, Default)]
pub struct ChosenServer(Arc<Mutex<Option<ServerId>>>);

impl ChosenServer {
    /// Writes which server gets the attempt. Later ones replace it: a router goes on to the next
    /// where one refuses.
    pub fn set(&self, server: ServerId) {
        *self.0.lock() = Some(server);
    }

    /// Returns the server that has the attempt. `None` if it has not been given to a server yet, or
    /// if no layer of the stack records it.
    pub fn get(&self) -> Option<ServerId> {
        self.0.lock().clone()
    }
}
