//! Where we answer otherwise than NeuroLink, and mean it.

use std::fmt;

use serde::Serialize;

/// Why an answer of ours is another one than NeuroLink's, and right all the same.
///
/// A case passes with one of these only if what is said here is so: each is checked against the
/// case, and any other difference is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Deviation {
    /// A destructive call that has no fit primary: refused, where NeuroLink gives it to any server.
    NoPrimary,
    /// A destructive call that NeuroLink sends below the weight because a category, a pin or an
    /// affinity says so: it goes to a primary.
    Primary,
    /// A call pinned to a server that cannot have it: refused, where NeuroLink gives it to another
    /// without a word.
    Pinned,
    /// A key's first server is the one it hashes to, so that it is the same after a restart. With
    /// NeuroLink it is whose turn it is; from then on both stay.
    Home,
    /// Servers take turns over all calls. NeuroLink counts for each tool apart, so that different
    /// tools all begin with the first server.
    Turns,
    /// Calls are spread over servers that are equally good. NeuroLink gives all to the first.
    Spread,
    /// Calls in flight count for the server's weight. With NeuroLink each counts the same.
    ForWeight,
    /// Servers beside a category come after those in it. With NeuroLink they do not come at all
    /// while one of the category is healthy.
    Wider,
    /// A list in the order in which servers were added. For destructive tools NeuroLink's is in
    /// that of the list of weights, and names a server as often as that does.
    Listed,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoPrimary => "a destructive call without a fit primary is refused",
            Self::Primary => "a destructive call goes to a primary, whatever else is said",
            Self::Pinned => "a call pinned to a server that cannot have it is refused",
            Self::Home => "a key's first server is the one it hashes to",
            Self::Turns => "servers take turns over all calls, not for each tool apart",
            Self::Spread => "calls are spread over servers that are equally good",
            Self::ForWeight => "calls in flight count for the server's weight",
            Self::Wider => "servers beside a category come after those in it",
            Self::Listed => "servers are listed once, in the order they were added",
        })
    }
}
