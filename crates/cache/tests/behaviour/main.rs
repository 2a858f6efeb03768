//! What a client sees of the cache, on a paused clock and against a scripted service.

mod common;
mod contract;
mod flight;
mod fresh;
mod reads;
mod scopes;
mod script;
mod writes;
