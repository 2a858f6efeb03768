//! One attempt of a call.

use crate::{ChosenServer, ServerId, Share, Watch};

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
    pub const fn first() -> Self {
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
        self.number = self.number.saturating_add(1);
        self.share = None;
        self.elsewhere_only = false;
        self.ignores_open_breakers = false;
        self.chosen = None;
        self.watch = None;
        if let Some(failed) = failed
            && !self.avoid.contains(failed)
        {
            self.avoid.push(failed.clone());
        }
    }
}

impl Default for Attempt {
    fn default() -> Self {
        Self::first()
    }
}
