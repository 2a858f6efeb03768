//! The router, through its public API.

mod bed;
mod beside;
mod changes;
mod choice;
mod fallback;
mod filter;
