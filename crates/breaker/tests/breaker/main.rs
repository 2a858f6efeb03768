//! Breakers, their set and their layer.

mod contract;
mod layer;
mod script;
mod server;
mod set;
mod shares;
