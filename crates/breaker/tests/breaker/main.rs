//! Breakers, their set and their layer.

mod contract;
mod layer;
mod server;
mod set;
mod shares;
