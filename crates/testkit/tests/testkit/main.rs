//! The test support itself, and what it measures.

mod contract;
mod parity;
mod score;
mod sockets;
