//! The `tollgate` binary: an MCP gateway that lets annotations decide every call.

mod api;
mod app;
mod args;
mod assemble;
mod at_once;
mod audit;
mod backend;
mod commands;
mod config;
mod connections;
mod error;
mod http;
mod inflight;
mod instructions;
mod listed;
mod log;
mod metrics;
mod output;
mod plain;
mod record;
mod report;
mod sample;
mod shutdown;
mod similar;
mod stdio;
mod telemetry;
mod view;

use std::process::ExitCode;

/// Calls allocate small buffers on every core; the system's allocator serialises more of that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    app::main()
}
