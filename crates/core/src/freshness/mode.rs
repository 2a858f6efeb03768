//! The lifetimes that an operator sets.

use std::time::Duration;

words! {
    /// What decides how long the results of a server's reads are kept, where neither the operator
    /// nor the server says it. In configuration: `"learned"` or `"fixed"`.
    #[non_exhaustive]
    FreshnessMode {
        /// Evidence: results are served for as long as repeated calls almost never had another
        /// answer. Right for servers of unknown behavior.
        Learned = "learned",
        /// The TTL of the plan. Right where the author of the stack knows the tools. Default.
        Fixed = "fixed",
    } default Fixed
}

/// The lifetime that an operator sets for the results of a tool, or of all tools of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caching {
    /// Nothing is kept.
    Never,
    /// Results of reads are kept for this long, also if the server says otherwise.
    For(Duration),
    /// The mode decides, even if another lifetime is set for all tools of the server.
    ByMode,
}
