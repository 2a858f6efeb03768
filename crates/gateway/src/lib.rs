//! What the `callward` binary does: an MCP gateway that lets annotations decide every call.

mod admin;
mod api;
mod app;
mod approvals;
mod args;
mod assemble;
mod at_once;
mod audit;
mod auth;
mod backend;
mod builtin;
mod commands;
mod config;
mod connections;
mod error;
mod evidence;
mod guardrails;
mod http;
mod instructions;
mod kept_names;
mod listed;
mod listings;
mod log;
mod metrics;
mod missing;
mod output;
mod pins;
mod plain;
mod readiness;
mod record;
mod registered;
mod relay;
mod report;
mod rounds;
mod runtime;
mod sample;
mod shutdown;
mod similar;
mod started;
mod state_dir;
mod stderr;
mod stdio;
mod subscriptions;
mod table;
mod telemetry;
mod toolsets;
mod view;
mod webhook;

use std::process::ExitCode;

/// Runs the command that the arguments of the process name.
#[must_use]
pub fn main() -> ExitCode {
    // before anything else: one such process runs for each server
    #[cfg(target_os = "linux")]
    {
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|word| word == assemble::SUPERVISE) {
            return callward_mcp::supervise::supervise(args);
        }
    }
    app::main()
}

/// Checks the text of a config file that refers to nothing outside of it.
///
/// # Errors
///
/// All its faults, as the operator reads them.
#[cfg(fuzzing)]
pub fn check_config(text: &str) -> Result<(), String> {
    let checked = config::Config::parse_alone(text);
    checked.map(drop).map_err(|error| error.to_string())
}
