//! Picks the server for a call, by what the tool may do.
//!
//! A [`Pool`] holds the replica sets. A [`Router`] is the service in front of it: it reads the
//! call's plan, picks a [`Member`] of the tool's set and sends the call there.
//!
//! **Rule.** It comes before every strategy, pin and affinity. Servers below the plan's weight do
//! not exist for the call. Of the others, in this order: available ones, those that have not failed
//! this call, those with a weight, those of a preferred category; the [`Strategy`] chooses among
//! the best. An unavailable server is only asked when no other is left, and never for a call that
//! needs a weight. Reads keep going to a minimum share of a set even if breakers are open there
//! ([`RouterConfig::min_available`]).
//!
//! **Fallback.** A server whose breaker or queue refuses the call with nothing sent costs nothing:
//! the next one is asked, 32 at most. Any other failure ends the call here.
//!
//! **Readiness.** Always ready; the chosen server's readiness is awaited in the call's future,
//! until the call's deadline. Dropping the future drops the inner call.
//!
//! **Errors.** [`NoEligibleServer`](callward_core::ErrorKind::NoEligibleServer), not sent, with the
//! reason for each server.
//!
//! **Order.** A router ends a stack; inside it, per server, are breaker, limits and timeout.

pub mod affinity;
mod candidates;
mod choose;
mod config;
mod decision;
mod endpoint;
mod events;
mod ewma;
mod future;
mod member;
mod outcome;
mod pool;
mod rule;
mod service;
mod set;
mod state;
mod stats;
mod strategy;

pub use candidates::Candidates;
pub use config::RouterConfig;
pub use endpoint::Endpoint;
pub use events::{RouteEvent, RouteEvents, RouteListener};
pub use member::Member;
pub use pool::{Pool, UnknownServer};
pub use rule::ExclusionReason;
pub use service::Router;
pub use set::ReplicaSet;
pub use state::{Drained, Draining};
pub use stats::{ServerStats, SetStats, Totals};
pub use strategy::{Affinity, Strategy, StrategyName};
