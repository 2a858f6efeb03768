//! Calls that belong together go to one server, and move only when they must.

mod bed;
mod detour;
mod events;
mod key;
mod moves;
mod rule;
