//! The stack as a whole, over mock servers and real ones.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[cfg(feature = "approval")]
mod approvals;
mod asking;
mod authorized;
mod bed;
mod breakers;
mod builds;
mod changing_servers;
mod embedded;
mod explained;
mod instances;
mod layers;
mod lister;
mod listings;
mod observed;
mod pings;
mod plugins;
mod principals;
mod refined;
mod runtime_changes;
mod safe_calls;
mod servers;
mod statistics;
mod suggestions;
/// The decision trail: what is reported of a call is what happened to it, and what was expected.
mod trail {
    mod agree;
    mod bed;
    mod kinds;
    mod page;
    mod retries;
}
