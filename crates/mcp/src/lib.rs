//! Speaks MCP: upstream servers as leaves, and the serving face, over stdio and streamable HTTP.

pub mod face;
mod observed;
pub mod upstream;
pub mod wire;
