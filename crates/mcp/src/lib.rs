//! Speaks MCP: upstream servers as leaves, and the serving face, over stdio and streamable HTTP.

pub mod face;
mod observed;
#[cfg(target_os = "linux")]
pub mod supervise;
pub mod upstream;
pub mod wire;
