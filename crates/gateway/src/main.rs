//! The `callward` binary: an MCP gateway that lets annotations decide every call.

use std::process::ExitCode;

/// Calls allocate small buffers on every core; the system's allocator serialises more of that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    callward_gateway::main()
}
