//! The router, through its public API.

mod bed;
mod choice;
mod fallback;
mod filter;
