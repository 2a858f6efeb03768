//! The stack as a whole, over mock servers and real ones.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod bed;
mod breakers;
mod builds;
mod changing_servers;
mod deadlines;
mod embedded;
mod explained;
mod instances;
mod layers;
mod limits;
mod lister;
mod listings;
mod lost_replies;
mod pings;
mod profiles;
mod refined;
mod repetition;
mod routes;
mod routing;
mod runtime_changes;
mod safe_calls;
mod servers;
mod trail;
