//! The binary as users run it: a real process, real pipes, real sockets, real signals.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod admin;
mod approvals;
mod asked_of;
mod asks;
mod audit;
mod auth;
mod authorize;
mod cache;
mod channels;
mod cli;
mod clients;
mod connections;
mod credentials;
mod drain;
mod events;
mod failing;
mod grants;
mod guardrails;
mod hostile;
mod hosts;
mod instances;
mod limits;
mod metrics;
mod missing;
mod outcome;
mod page;
mod processes;
mod relay;
mod replay;
mod reports;
mod roles;
mod run;
mod scrape;
mod scripted;
mod servers;
mod shown;
mod startup;
mod subscriptions;
mod support;
mod tasks;
mod tls;
mod tokens;
mod traces;
mod upstream_tls;
