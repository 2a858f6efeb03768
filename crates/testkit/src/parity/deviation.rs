//! Where we answer otherwise than NeuroLink, and mean it.

use callward_core::words;

words! {
    /// Why an answer of ours is another one than NeuroLink's, and right all the same.
    ///
    /// A case passes with one of these only if what is said here is so: each is checked against the
    /// case, and any other difference is a failure.
    Deviation {
        /// A destructive call that has no fit primary: refused, where NeuroLink gives it to any
        /// server.
        NoPrimary = "no_primary",
        /// A destructive call that NeuroLink sends below the weight because a category, a pin or an
        /// affinity says so: it goes to a primary.
        Primary = "primary",
        /// A call pinned to a server that cannot have it: refused, where NeuroLink gives it to
        /// another without a word.
        Pinned = "pinned",
        /// A key's first server is the one it hashes to, so that it is the same after a restart.
        /// With NeuroLink it is whose turn it is; from then on both stay.
        Home = "home",
        /// Servers take turns over all calls. NeuroLink counts for each tool apart, so that
        /// different tools all begin with the first server.
        Turns = "turns",
        /// Calls are spread over servers that are equally good. NeuroLink gives all to the first.
        Spread = "spread",
        /// Calls in flight count for the server's weight. With NeuroLink each counts the same.
        ForWeight = "for_weight",
        /// Servers beside a category come after those in it. With NeuroLink they do not come at all
        /// while one of the category is healthy.
        Wider = "wider",
        /// A list in the order in which servers were added. For destructive tools NeuroLink's is in
        /// that of the list of weights, and names a server as often as that does.
        Listed = "listed",
    }
}
