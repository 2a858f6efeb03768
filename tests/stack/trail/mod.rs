//! The decision trail: what is reported of a call is what happened to it, and what was expected.

mod agree;
mod bed;
mod kinds;
mod page;
mod retries;
