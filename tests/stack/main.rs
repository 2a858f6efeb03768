//! The stack as a whole, over mock servers and real ones.

mod breakers;
mod changing_servers;
mod deadlines;
mod embedded;
mod explained;
mod instances;
mod layers;
mod limits;
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
mod schedules;
mod scopes;
mod servers;
mod sockets;
mod trail;
