//! Breakers, their set and their layer.

mod bed;
mod layer;
mod set;
