//! One attempt of a call.

use std::ops::Deref;
use std::time::Instant;

use smallvec::SmallVec;

use crate::{ChosenServer, ServerId};

/// Which attempt of a call this is, and which servers to try last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    /// Servers that already failed this call: to be tried only if there is no other.
    pub avoid: Avoided,
    /// When this attempt must be over, so that the call's deadline leaves time for another one.
    /// `None`: the call's deadline alone counts.
    pub until: Option<Instant>,
    /// Only servers that are not avoided, are healthy and have a weight: a second attempt that runs
    /// beside the first. If there is none, the attempt fails at once, not sent.
    pub elsewhere_only: bool,
    /// Where to write which server gets this attempt, if somebody needs to know while it runs.
    pub chosen: Option<ChosenServer>,
}

impl Attempt {
    /// Returns the first attempt.
    #[must_use]
    pub fn first() -> Self {
        Self {
            number: 1,
            avoid: Avoided::default(),
            until: None,
            elsewhere_only: false,
            chosen: None,
        }
    }

    /// Turns this attempt into the next one, avoiding the server that failed.
    pub fn advance(&mut self, failed: Option<&ServerId>) {
        self.number = self.number.saturating_add(1);
        self.elsewhere_only = false;
        self.chosen = None;
        if let Some(failed) = failed
            && !self.avoid.contains(failed)
        {
            self.avoid.push(failed.clone());
        }
    }
}

/// Servers that an attempt avoids. A pointer, as nearly every call has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Avoided(Option<Box<SmallVec<[ServerId; 2]>>>);

impl Avoided {
    /// Adds a server.
    pub fn push(&mut self, server: ServerId) {
        self.0.get_or_insert_default().push(server);
    }
}

impl Deref for Avoided {
    type Target = [ServerId];

    fn deref(&self) -> &[ServerId] {
        self.0.as_deref().map_or(&[], SmallVec::as_slice)
    }
}
