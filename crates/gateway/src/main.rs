//! The `callward` binary: an MCP gateway that lets annotations decide every call.

use std::process::ExitCode;

/// Calls allocate small buffers on every core; the system's allocator serialises more of that. No
/// huge pages: the system clears 2 MiB at the first write to one, and other calls wait meanwhile.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    callward_gateway::main()
}
