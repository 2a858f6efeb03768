//! Hedging, through its public API and before a real router.

mod bed;
mod ends;
mod when;
