//! Calls that belong together go to one server, and move only when they must.

mod events;
mod moves;

use callward_router::affinity::AffinityConfig;

use crate::bed::{Bed, by};

/// By session, over these servers.
fn sessions(words: &str) -> Bed {
    Bed::together(&AffinityConfig::default(), words)
}

/// Returns the servers of reads of the first sessions.
fn read_all(bed: &Bed, sessions: usize) -> Vec<String> {
    (0..sessions).map(|n| bed.decide(&by(n, "read"))).collect()
}
