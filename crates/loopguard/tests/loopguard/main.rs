//! The loop guard, as a caller sees it, on a paused clock.

mod contract;
mod guard;
