//! The binary as users run it: a real process, real pipes, real sockets, real signals.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

mod admin;
mod annotate;
mod api;
mod audit;
mod audit_killed;
mod breakers;
mod cache;
mod cli;
mod connections;
mod crash;
mod crowd;
mod drain;
mod events;
mod flood;
mod forged;
mod fresh;
mod golden;
mod hostile;
mod hosts;
mod instances;
mod instructions;
mod legacy;
mod limits;
mod limits_config;
mod meta;
mod metrics;
mod outcome;
mod pipe;
mod record;
mod replay_page;
mod run;
mod scrape;
mod scripted;
mod serve;
mod servers;
mod startup;
mod stderr;
mod support;
mod telemetry;
mod traces;
mod trail;
mod unsettled;
